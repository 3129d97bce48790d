"""The language models' tokenizer and their endless training data, made by worker processes from seeds."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from inferlab.models.stories import document, documents

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
CONTEXT = 1024  # positions that the models accept
SHARD_PACKS = 960
TRAIN_SEED, TOKENIZER_SEED = 7_000_000_000, 5


def make_tokenizer(folder: Path, vocab_size: int = 1024, n_documents: int = 6000) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE on training documents and save it for AutoTokenizer.

    Every text can be encoded (256 bytes are in the vocabulary); the words of the language are one or two tokens each.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[PAD, BOS, EOS], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = [d.text().replace(EOS, "") for d in documents(n_documents, seed=TOKENIZER_SEED, held_out=False)]
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, tokenizer.token_to_id(BOS))])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=BOS, eos_token=EOS, pad_token=PAD, padding_side="left",
        model_max_length=CONTEXT, clean_up_tokenization_spaces=False, model_input_names=["input_ids", "attention_mask"],
    )
    fast.save_pretrained(folder)
    return fast


_worker: dict = {}


def _start_worker(tokenizer_file: str) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _worker["tokenizer"] = Tokenizer.from_file(tokenizer_file)


def load_shard(index: int, folder: Path, pack: int) -> np.ndarray:
    """Shard `index` from `folder`, made first if no model has needed it yet."""
    file = folder / f"{index}-{pack}.npy"
    if not file.exists():
        unfinished = folder / f"{index}-{pack}.{os.getpid()}.npy"
        np.save(unfinished, make_shard(index, pack))
        unfinished.replace(file)
    return np.load(file)


def make_shard(index: int, pack: int, packs: int = SHARD_PACKS) -> np.ndarray:
    """Shard `index` as (packs, pack) uint16: documents back to back, each row beginning with one, the last cut off."""
    rng = random.Random(TRAIN_SEED + index)
    rows = np.zeros((packs, pack), dtype=np.uint16)
    row, filled, waiting = 0, 0, deque()
    while row < packs:
        if not waiting:
            texts = [document(rng.getrandbits(48), held_out=False).text() for _ in range(128)]
            waiting.extend(e.ids for e in _worker["tokenizer"].encode_batch(texts))
        ids = waiting.popleft()[: pack - filled]
        rows[row, filled : filled + len(ids)] = ids
        filled += len(ids)
        if filled == pack:
            row, filled = row + 1, 0
    return rows


def batches(
    tokenizer_file: Path, shards: Path, batch: int, pack: int, first_step: int, steps: int, workers: int
) -> Iterator[np.ndarray]:
    """Batches (batch, pack) for steps first_step..steps-1: the same for a step, however often training was interrupted.

    Worker processes make the data while a model trains on it, and keep it in the folder `shards` for the next model.
    """
    shards.mkdir(parents=True, exist_ok=True)
    per_shard = SHARD_PACKS // batch
    indices = iter(range(first_step // per_shard, -(-steps // per_shard)))
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, _start_worker, (str(tokenizer_file),)) as pool:
        coming: deque = deque()
        step = first_step
        while step < steps:
            while len(coming) < 3 * workers and (index := next(indices, None)) is not None:
                coming.append(pool.apply_async(load_shard, (index, shards, pack)))
            rows = coming.popleft().get()
            for i in range(step % per_shard, per_shard):
                if step == steps:
                    return
                yield rows[i * batch : (i + 1) * batch]
                step += 1
