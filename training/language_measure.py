"""Measures the language models on worlds they were not trained on: perplexity, right answers, acceptance of
the draft."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from inferlab.models.stories import documents, questions
from training.language_data import TOKENIZER

HELD_OUT_SEED = 99
GREEDY, SAMPLED = 0.0, 1.0


def measure(folder: Path, target_name: str, draft_names: list[str], n: int, device: str) -> dict:
    """All figures of a target and its drafts: {model: {...}, draft: {"acceptance": {kind: {0.0: a, 1.0:
    a}}}}."""
    tokenizer = AutoTokenizer.from_pretrained(folder / TOKENIZER)
    loaded = {
        name: AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float32).to(device).eval()
        for name in [target_name, *draft_names]
    }
    figures: dict = {}
    started = time.perf_counter()
    for name, model in loaded.items():
        accuracy, by_kind, wrong = answer_accuracy(model, tokenizer, n)
        figures[name] = {
            "parameters": model.num_parameters(),
            "perplexity": perplexity(model, tokenizer, n // 2),
            "accuracy": accuracy,
            "accuracy_by_kind": by_kind,
        }
        print(f"{name}: {figures[name]} ({time.perf_counter() - started:.0f} s)", flush=True)
        for prompt, expected, got in wrong[:6]:
            print(f"   ...{prompt[-90:]!r} expected {expected!r} got {got!r}", flush=True)
    target = loaded[target_name]
    prompts = acceptance_prompts(max(8, n // 8))
    continued = {
        (kind, t): [continue_text(target, tokenizer, chunk, t) for chunk in chunks(texts, 64)]
        for kind, texts in prompts.items() for t in (GREEDY, SAMPLED)
    }
    for name in draft_names:
        rates: dict = defaultdict(dict)
        for (kind, t), batches in continued.items():
            parts = [acceptance(target, loaded[name], *batch, t) for batch in batches]
            rates[kind][t] = sum(a for a, _ in parts) / sum(m for _, m in parts)
        for t in (GREEDY, SAMPLED):
            rates["mean"][t] = sum(rates[k][t] for k in prompts) / len(prompts)
        figures[name]["acceptance"] = {k: dict(v) for k, v in rates.items()}
        print(f"{name}: acceptance {figures[name]['acceptance']} ({time.perf_counter() - started:.0f} s)",
              flush=True)
    return figures


def chunks(items: list, size: int) -> list[list]:
    return [items[i : i + size] for i in range(0, len(items), size)]


@torch.no_grad()
def perplexity(model, tokenizer, n: int) -> float:
    """Perplexity a token over `n` held-out documents, each alone in its row."""
    loss, count = 0.0, 0
    texts = [d.text() for d in documents(max(8, n), seed=HELD_OUT_SEED)]
    for chunk in chunks(texts, 64):
        batch = tokenizer(chunk, return_tensors="pt", padding=True, padding_side="right").to(model.device)
        logits = model(**batch).logits[:, :-1].float()
        labels = batch.input_ids[:, 1:].masked_fill(batch.attention_mask[:, 1:] == 0, -100)
        loss += torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(),
                                                  reduction="sum").item()
        count += int((labels != -100).sum())
    return math.exp(loss / count)


def answer_accuracy(model, tokenizer, n: int) -> tuple[float, dict, list]:
    """The share of `n` held-out questions that greedy decoding answers to the letter; by kind; and what went
    wrong."""
    right: dict[str, list[bool]] = defaultdict(list)
    wrong = []
    asked = [(d.prompt(t), t) for d, t in questions(n, seed=HELD_OUT_SEED)]
    asked.sort(key=lambda pair: len(pair[0]))
    for chunk in chunks(asked, 128):
        batch = tokenizer([prompt for prompt, _ in chunk], return_tensors="pt", padding=True).to(model.device)
        longest = max(len(tokenizer(t.reply).input_ids) for _, t in chunk)
        out = model.generate(**batch, max_new_tokens=longest + 2, do_sample=False)
        for (prompt, turn), ids in zip(chunk, out[:, batch.input_ids.shape[1] :], strict=True):
            got = tokenizer.decode(ids, skip_special_tokens=True).strip()
            right[turn.kind].append(got == turn.reply)
            if got != turn.reply:
                wrong.append((prompt, turn.reply, got))
    total = [hit for hits in right.values() for hit in hits]
    return sum(total) / len(total), {k: round(sum(v) / len(v), 3) for k, v in sorted(right.items())}, wrong


@torch.no_grad()
def answers_at_once(model, tokenizer, n: int) -> tuple[float, dict]:
    """`answer_accuracy` in one pass: greedy decoding writes a reply exactly if every token of it is the
    likeliest there."""
    right: dict[str, list[bool]] = defaultdict(list)
    asked = [(d.prompt(t), t) for d, t in questions(n, seed=HELD_OUT_SEED)]
    for chunk in chunks(sorted(asked, key=lambda pair: len(pair[0])), 64):
        full = [f"{prompt} {turn.reply}</s>" for prompt, turn in chunk]
        batch = tokenizer(full, return_tensors="pt", padding=True, padding_side="right").to(model.device)
        likeliest = model(**batch).logits[:, :-1].argmax(-1)
        for (prompt, turn), ids, mask, got in zip(chunk, batch.input_ids, batch.attention_mask, likeliest,
                                                  strict=True):
            start, end = len(tokenizer(prompt).input_ids), int(mask.sum())
            right[turn.kind].append(torch.equal(got[start - 1 : end - 1], ids[start:end]))
    total = [hit for hits in right.values() for hit in hits]
    return sum(total) / len(total), {k: round(sum(v) / len(v), 3) for k, v in sorted(right.items())}


def acceptance_prompts(n: int) -> dict[str, list[str]]:
    """Held-out prompts by kind: go on with a story, describe a scene, answer a question, repeat a line."""
    stories, describes = [], []
    for doc in documents(n, seed=HELD_OUT_SEED + 1, kind="story", events=10):
        sentences = doc.context.split(". ")
        stories.append(". ".join(sentences[: len(sentences) // 2]) + ".")
    for doc in documents(n, seed=HELD_OUT_SEED + 2, kind="scene"):
        describes.append(f"{doc.context}</s>\nDescribe the scene.\nAnswer:")
    answers = [d.prompt(t) for d, t in questions(n, seed=HELD_OUT_SEED + 3)]
    repeats = [d.prompt(d.turns[0]) for d in documents(n, seed=HELD_OUT_SEED + 4, kind="repeat")]
    return {"story": stories, "describe": describes, "answer": answers, "repeat": repeats}


def continue_text(target, tokenizer, prompts: list[str], temperature: float, tokens: int = 64):
    """The prompts and what the target wrote after them: ids (N, L), attention mask (N, L), and where it wrote
    (N, L) bool."""
    torch.manual_seed(0)
    batch = tokenizer(prompts, return_tensors="pt", padding=True).to(target.device)
    how = {"do_sample": True, "top_k": 0} if temperature > 0 else {"do_sample": False}  # top_k=0: all of p
    ids = target.generate(**batch, max_new_tokens=tokens, **how)
    start = batch.input_ids.shape[1]
    written = torch.zeros_like(ids, dtype=torch.bool)
    written[:, start:] = ids[:, start:] != tokenizer.pad_token_id
    mask = torch.cat([batch.attention_mask, written[:, start:].long()], dim=1)
    return ids, mask, written


@torch.no_grad()
def acceptance(target, draft, ids, mask, written, temperature: float) -> tuple[float, int]:
    """The summed chance that one drafted token is accepted, and over how many positions.

    At temperature 1 a token that the draft sampled from q is kept with probability sum(min(p, q)), p being
    the target's distribution (Leviathan et al., 2023, corollary 3.6); at 0 it is kept where both agree on the
    likeliest token.
    """
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    p = target(input_ids=ids, attention_mask=mask, position_ids=positions).logits[:, :-1].float()
    q = draft(input_ids=ids, attention_mask=mask, position_ids=positions).logits[:, :-1].float()
    kept = (p.argmax(-1) == q.argmax(-1)).float() if temperature == 0 else torch.minimum(p.softmax(-1),
                                                                                         q.softmax(-1)).sum(-1)
    where = written[:, 1:]
    return kept[where].sum().item(), int(where.sum())
