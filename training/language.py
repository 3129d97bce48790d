"""Train the bundled language models, a target and a draft, and measure them: one command, one GPU, minutes.

    python -m training.language                     everything, into src/inferlab/weights/language
    python -m training.language train --model draft     one stage (tokenizer, train, evaluate)

Killed and started again, it goes on from the last checkpoint in --build. Batches follow from the step's
number, so an interrupted run sees the same data as an uninterrupted one. `--seconds` makes fewer steps of it
on a slower device.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from transformers import AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM

from inferlab.models.stories import documents
from inferlab.models.stories.repeats import WORDS
from training.language_data import CONTEXT, TOKENIZER, batches, make_tokenizer
from training.language_measure import answers_at_once, measure
from training.language_optim import MuonAdam
from training.language_step import Step, stack, unstack

ROOT = Path(__file__).parent.parent
WEIGHTS = ROOT / "src/inferlab/weights/language"

# width, width of the MLP, layers, query heads, key-value heads, width of a head
SHAPES = {
    "target": (256, 704, 8, 8, 2, 32),
    "draft": (128, 320, 2, 4, 2, 32),
    "draft-narrow": (64, 192, 2, 4, 2, 16),
    "draft-shallow": (160, 448, 1, 4, 2, 40),
    "tiny": (32, 64, 1, 2, 1, 16),
}
STEPS = {"target": 13408, "draft": 800, "draft-narrow": 1200}
BATCH, PACK, WARMUP, SEED = 64, 512, 300, 11
DECAY_FROM = 0.7  # the rate is constant until this share of the steps


def make_model(name: str, tokenizer) -> LlamaForCausalLM:
    """A model of the named shape with fresh seeded weights (float32)."""
    torch.manual_seed(SEED)
    width, mlp, layers, heads, kv_heads, head = SHAPES[name]
    config = LlamaConfig(
        hidden_size=width, intermediate_size=mlp, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv_heads, head_dim=head, vocab_size=len(tokenizer),
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    start_as_a_copier(model)
    return model


@torch.no_grad()
def start_as_a_copier(model: LlamaForCausalLM, copying: float = 0.5) -> None:
    """Initialise so that attention passes on the tokens it looks at, and the MLPs add nothing yet.

    Output and value projections start as each other's transpose, so that with tied embeddings a token that is
    looked at becomes likelier (mimetic initialisation, Trockman and Kolter, 2023). From the usual start, 276
    M tokens did not teach an 8-layer model to repeat a name: all names are alike to it, its embeddings drift
    together, and what tells them apart gets no gradient.
    """
    config, width = model.config, model.config.hidden_size
    kv_heads, head = config.num_key_value_heads, config.head_dim
    group = config.num_attention_heads // kv_heads
    model.model.embed_tokens.weight.normal_(0, 0.05)
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for linear in (attention.q_proj, attention.k_proj, mlp.gate_proj, mlp.up_proj):
            linear.weight.normal_(0, width**-0.5)
        mlp.down_proj.weight.zero_()
        values = torch.nn.init.orthogonal_(torch.empty(kv_heads * head, width))
        attention.v_proj.weight.copy_(values)
        by_query_head = values.view(kv_heads, head, width).repeat_interleave(group, dim=0).reshape(-1, width)
        attention.o_proj.weight.copy_(copying * by_query_head.T)


def rate_at(step: int, steps: int) -> float:
    """The share of the peak learning rate: a linear warm-up, a constant, and a straight line down to zero."""
    return min(1.0, (step + 1) / WARMUP, (steps - step) / max(1, steps * (1 - DECAY_FROM)))


@torch.no_grad()
def copying_loss(model: LlamaForCausalLM, tokenizer, device: str) -> float:
    """Nats a token for saying held-out lines of words again: 4.5 for a model that guesses among the words, 0
    for a copier."""
    again = [d for d in documents(64, seed=SEED, kind="repeat", words=12) if d.turns[0].kind == "again"]
    batch = tokenizer([d.text() for d in again], return_tensors="pt", padding=True,
                      padding_side="right").to(device)
    logits = model(**batch, use_cache=False).logits[:, :-1].float()
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch.input_ids[:, 1:],
                                               reduction="none")
    words = torch.tensor(tokenizer.convert_tokens_to_ids([f"\u0120{word}" for word in WORDS]), device=device)
    replied = (batch.input_ids == tokenizer.eos_token_id).cumsum(1)[:, :-1] == 1
    return losses[replied & torch.isin(batch.input_ids[:, 1:], words)].mean().item()


def train(name: str, args: argparse.Namespace) -> None:
    """Train one model, checkpointing to args.build, and save it in fp16 to args.out."""
    steps = args.steps or STEPS.get(name, STEPS["draft"])
    checkpoint = args.build / f"{name}.pt"
    saved = torch.load(checkpoint, map_location=args.device) if checkpoint.exists() else None
    first = saved["step"] if saved else 0
    data = batches(
        args.out / TOKENIZER / "tokenizer.json", args.build / "shards", args.batch, args.pack, first, steps,
        args.workers)
    tokenizer = AutoTokenizer.from_pretrained(args.out / TOKENIZER)
    model = make_model(name, tokenizer).to(args.device)
    weights = stack(model)
    optimizer = MuonAdam(weights, args.rate)
    if saved:
        print(f"{name}: going on at step {first}", flush=True)
        with torch.no_grad():
            for kept, live in ((saved["weights"], weights), (saved["optimizer"], optimizer.state())):
                for key, t in live.items():
                    t.copy_(kept[key])
    step_on = Step(weights, optimizer, model.config, torch.bfloat16
                   if args.device == "cuda" else torch.float32)
    started = time.perf_counter()
    for step, rows in enumerate(data, start=first):
        if step >= steps:
            break
        loss = step_on(torch.from_numpy(rows.astype("int64")).to(args.device, non_blocking=True),
                       rate_at(step, steps))
        if step == first + 200:
            marked = time.perf_counter() + 0 * loss.item()  # waits for the device
        done = step + 1
        if done % args.log == 0 or done == steps:
            unstack(weights, model)
            report = {"loss": loss.item(), "copying": copying_loss(model, tokenizer, args.device),
                      "answers": answers_at_once(model, tokenizer, 512)[0]}
            seconds = time.perf_counter() - started
            if args.seconds and first + 200 < step < 0.95 * DECAY_FROM * steps:
                pace = (done - first - 201) / (time.perf_counter() - marked)
                steps = min(args.steps or STEPS.get(name, STEPS["draft"]),
                            done + int(pace * (args.seconds - seconds)))
            print(f"{name}: step {done}/{steps} {', '.join(f'{k} {v:.4f}' for k, v in report.items())}, "
                  f"{seconds:.0f} s", flush=True)
            if done >= args.must_copy_by > 0 and report["copying"] > 3:
                raise SystemExit(f"{name} has not learned to repeat a line by step {done}: stopped to save "
                                 f"the device")
        # so that from any checkpoint training can become longer
        if done % args.save == 0 and step < DECAY_FROM * steps:
            torch.save({"weights": weights, "optimizer": optimizer.state(), "step": done}, checkpoint)
    unstack(weights, model)
    save(model, tokenizer, args.out / name)
    (args.build / f"{name}.json").write_text(json.dumps({
        "steps": steps, "tokens": steps * args.batch * args.pack,
        "seconds": round(time.perf_counter() - started)}))


def save(model: LlamaForCausalLM, tokenizer, folder: Path) -> None:
    """Save model (fp16) and a generation config that only knows the special tokens."""
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id)
    model.half().save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", nargs="?", choices=("all", "tokenizer", "train", "evaluate"), default="all")
    parser.add_argument("--model", default="target", choices=SHAPES)
    parser.add_argument("--target", default="target", choices=SHAPES)
    parser.add_argument("--draft", nargs="*", default=["draft"], choices=SHAPES)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--build", type=Path, default=ROOT / "build/language")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=0, help="0: as the model's own")
    parser.add_argument("--seconds", type=int, default=0, help="train fewer steps if they would take longer "
                                                               "than this")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--pack", type=int, default=PACK, help="tokens of a row; one in eight batches has "
                                                               "rows twice as long")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--log", type=int, default=1000)
    parser.add_argument("--must-copy-by", type=int, default=2000, help="stop if it cannot repeat a line "
                                                                       "then; 0: never")
    parser.add_argument("--save", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=1.0, help="times the peak learning rates")
    args = parser.parse_args()
    args.build.mkdir(parents=True, exist_ok=True)
    source = args.out / TOKENIZER
    if args.stage in ("all", "tokenizer") and not (source / "tokenizer.json").exists():
        print(f"tokenizer: {len(make_tokenizer(source))} entries", flush=True)
    names = {"all": [args.target, *args.draft], "train": [args.model]}.get(args.stage, [])
    for name in names:
        if not (args.out / name / "model.safetensors").exists():
            train(name, args)
    if args.stage in ("all", "evaluate"):
        figures = measure(args.out, args.target, args.draft, args.questions, args.device)
        (args.build / "figures.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
