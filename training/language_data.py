"""The language models' tokenizer and their endless training data, made by worker processes from seeds."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from inferlab.models.stories import MIX, Document, document, documents
from training.language_step import REPLY

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
CONTEXT = 1024  # positions that the models accept
SHARD_PACKS = 960
LONG_EVERY = 8  # one shard in eight has rows of twice the length
USES, WINDOW = 2, 24  # every shard is trained on twice, 24 shards apart
#: How much of each kind fills about one row; a longer document is cut off, after a shorter one the next
#: begins.
SIZES = {"scene": {"turns": 18}, "story": {"turns": 14}, "repeat": {}}
LONG_SIZES = {"scene": {"turns": 30}, "story": {"turns": 20}, "repeat": {}}
LONG_EVENTS = (8, 30)
TRAIN_SEED, TOKENIZER_SEED = 7_000_000_000, 5
TOKENIZER = "tokenizer"
"""The folder of the tokenizer, one for all sizes."""


def make_tokenizer(folder: Path, vocab_size: int = 1024, n_documents: int = 6000) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE on training documents and save it for AutoTokenizer.

    Every text can be encoded (256 bytes are in the vocabulary); the words of the language are one or two
    tokens each.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[PAD, BOS, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = [d.text().replace(EOS, "") for d in documents(n_documents, seed=TOKENIZER_SEED, held_out=False)]
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, tokenizer.token_to_id(BOS))])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=BOS, eos_token=EOS, pad_token=PAD, padding_side="left",
        model_max_length=CONTEXT, clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
    save_tokenizer(fast, folder)
    return fast


def save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """`save_pretrained` without the indentation of tokenizer.json, which is three fifths of a file that every
    model carries."""
    tokenizer.save_pretrained(folder)
    written = folder / "tokenizer.json"
    written.write_text(json.dumps(json.loads(written.read_text("utf-8")), ensure_ascii=False,
                                  separators=(",", ":")), "utf-8")


PIECES = re.compile(r"</s>| ?[A-Za-z]+| ?[^\sA-Za-z<]+|\s")  # as the tokenizer cuts this language's text


class Marked(dict):
    """Piece of text -> its token numbers plus `mark`; a piece that is new is encoded once."""

    def __init__(self, tokenizer: Tokenizer, mark: int):
        super().__init__()
        self.tokenizer, self.mark = tokenizer, mark

    def __missing__(self, piece: str) -> list[int]:
        found = self.tokenizer.encode(piece, add_special_tokens=False).ids
        self[piece] = [i | self.mark for i in found]
        return self[piece]


class Encoder:
    """Encodes documents as the tokenizer does, several times faster, and marks the tokens of replies (`REPLY`
    is added)."""

    def __init__(self, tokenizer_file: str | Path):
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
        self.start = tokenizer.token_to_id(BOS)
        self.plain, self.marked = Marked(tokenizer, 0), Marked(tokenizer, REPLY)

    def __call__(self, doc: Document) -> list[int]:
        ids = [self.start]
        for piece in PIECES.findall(doc.context + EOS):
            ids += self.plain[piece]
        for turn in doc.turns:
            for piece in PIECES.findall(f"\n{turn.request}"):
                ids += self.plain[piece]
            for piece in PIECES.findall(f" {turn.reply}{EOS}"):
                ids += self.marked[piece]
        return ids


_worker: dict = {}


def _start_worker(tokenizer_file: str) -> None:
    _worker["encoder"] = Encoder(tokenizer_file)


def load_shard(index: int, folder: Path, pack: int) -> np.ndarray:
    """Shard `index` from `folder`, made first if no model has needed it yet."""
    file = folder / f"{index}-{pack}.npy"
    if not file.exists():
        unfinished = folder / f"{index}-{pack}.{os.getpid()}.npy"
        np.save(unfinished, make_shard(index, pack, _worker["encoder"]))
        unfinished.replace(file)
    return np.load(file)


def training_document(rng: random.Random, long: bool) -> Document:
    """One document with as many turns as fill a row, so that most of what is trained on has one right
    continuation."""
    kind = rng.choice(MIX)
    sizes = dict((LONG_SIZES if long else SIZES)[kind])
    if long and kind == "story":
        sizes["events"] = rng.randint(*LONG_EVENTS)
    return document(rng.getrandbits(48), kind, held_out=False, **sizes)


def make_shard(index: int, pack: int, encode: Encoder) -> np.ndarray:
    """Shard `index` as (packs, length) uint16: documents back to back, each row beginning with one, the last
    cut off.

    Tokens of replies carry `REPLY`. One shard in LONG_EVERY has half as many rows of twice the length `pack`.
    """
    long = index % LONG_EVERY == LONG_EVERY - 1
    packs, pack = (SHARD_PACKS // 2, 2 * pack) if long else (SHARD_PACKS, pack)
    rng = random.Random(TRAIN_SEED + index)
    rows = np.zeros((packs, pack), dtype=np.uint16)
    for row in rows:
        filled = 0
        while filled < pack:
            ids = encode(training_document(rng, long))[: pack - filled]
            row[filled : filled + len(ids)] = ids
            filled += len(ids)
    return rows


def shard_of(block: int) -> int:
    """Which shard the `block`-th run of steps trains on."""
    return block // (USES * WINDOW) * WINDOW + block % WINDOW


def batches(
    tokenizer_file: Path, shards: Path, batch: int, pack: int, first_step: int, steps: int, workers: int
) -> Iterator[np.ndarray]:
    """Batches for steps first_step..steps-1: the same for a step, however often training was interrupted.

    A batch is (batch, pack) or, in one shard of LONG_EVERY, (batch / 2, 2 pack) marked tokens. Worker
    processes, forked at once, make the data while a model trains on it, and keep it in the folder `shards`
    for its other uses.
    """
    shards.mkdir(parents=True, exist_ok=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # or the library warns about the fork
    pool = multiprocessing.get_context("fork").Pool(workers, _start_worker, (str(tokenizer_file),))
    return _batches(pool, shards, batch, pack, first_step, steps, workers)


def _batches(pool, shards: Path, batch: int, pack: int, first_step: int, steps: int,
             workers: int) -> Iterator[np.ndarray]:
    per_shard = SHARD_PACKS // batch
    blocks = iter(range(first_step // per_shard, -(-steps // per_shard)))
    with pool:
        coming: deque = deque()
        step = first_step
        while step < steps:
            while len(coming) < 3 * workers and (block := next(blocks, None)) is not None:
                coming.append(pool.apply_async(load_shard, (shard_of(block), shards, pack)))
            rows = coming.popleft().get()
            n = len(rows) // per_shard
            for i in range(step % per_shard, per_shard):
                if step == steps:
                    return
                yield rows[i * n : (i + 1) * n]
                step += 1
