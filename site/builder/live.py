"""Figures that move, for sections of the handbook: every state is a piece of the page, made while the site is
built, and `live.mjs` shows one at a time. Without a script the last one is there."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from inferlab.lab.setup import hide_notices
from inferlab.models import load_language_model
from inferlab.models.pictures import WEIGHTS
from inferlab.models.quiet import quiet
from inferlab.models.scenes import check_pictures

from . import ROOT
from .digests import digest
from .templates import filled

SCALES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
PAGE, BLOCKS = 4, 8
SLOTS = 3
LENGTHS = (2, 7, 3, 4, 2, 5, 3)
"""Tokens that each request of the batch writes, in order of arrival."""


def with_live(lab: str, text: str, cache: Path, static: Path) -> str:
    """A section's Markdown with its moving figure below its first figure's caption, if it has one.

    Raises:
        ValueError: the section has no caption of a figure.
    """
    if lab not in MOVING:
        return text
    before, mark, after = text.partition("\n**Figure.**")
    caption, _, rest = after.partition("\n\n")
    if not mark:
        raise ValueError(f"the section of {lab} has no figure, below which the moving one belongs")
    title, said, states, start = MOVING[lab](cache, static)
    html = filled("live", title=title, said=said, states=states, start=start)
    return f"{before}{mark}{caption}\n\n```{{raw}} html\n{html}\n```\n\n{rest}"


Moving = tuple[str, str, list[str], int]
"""Title, what a reader can do, the states as HTML, and the one that is shown first."""


def guidance(cache: Path, static: Path) -> Moving:
    """One noise at eleven scales."""
    source = ROOT / "handbook" / "figures" / "guidance.py"
    kept = cache / f"guidance-{digest(Path(__file__), source, WEIGHTS)}"
    if not (kept / "said.json").exists():
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "said.json").write_text(json.dumps(_drawn(source, kept)), "utf-8")
    folder = static / "live"
    folder.mkdir(parents=True, exist_ok=True)
    states = []
    for number, (scale, (right, saturation)) in enumerate(
        zip(SCALES, json.loads((kept / "said.json").read_text("utf-8")), strict=True)
    ):
        name = f"guidance-{number}.webp"
        (folder / name).write_bytes((kept / name).read_bytes())
        meaning = {0.0: "the prompt is not heard", 1.0: "the plain answer to the prompt"}.get(scale, "")
        verdict = "sees one red circle and nothing else" if right else "does not see just one red circle"
        states.append(
            f'<div class="two"><img src="../_static/live/{name}" width="320" height="320"'
            f' alt="The picture at s = {scale:g}"><div><p class="big">s = {scale:g}</p>'
            f"<p><code>uncond + {scale:g} · (cond − uncond)</code>{'<br>' * bool(meaning)}{meaning}</p>"
            f"{_line(scale)}<p>The checker {verdict}. Saturation {saturation:.2f}.</p></div></div>"
        )
    said = '"A red circle" from one noise, in six steps. Move along the line.'
    return "Along the line, and too far", said, states, SCALES.index(4.0)


def _drawn(source: Path, folder: Path) -> list[tuple[bool, float]]:
    """Draw the pictures with the figure's own function; returns what the checker says, and the saturation."""
    hide_notices()
    with quiet():
        figure = runpy.run_path(str(source))

    said = []
    for number, scale in enumerate(SCALES):
        drawn = figure["pictures"](scale, 1)
        right = check_pictures(drawn, [figure["PROMPT"]])[0].right
        said.append((bool(right), float((drawn.amax(1) - drawn.amin(1)).mean())))
        pixels = (drawn[0].permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()
        Image.fromarray(pixels).save(folder / f"guidance-{number}.webp", quality=85, method=6)
    return said


def _line(scale: float) -> str:
    """The line through the two answers, and where this scale is on it; as far as 16."""
    at = 20 + 260 * scale / 16
    return (
        '<svg viewBox="0 0 300 44" aria-hidden="true"><path class="rail" d="M20 14H292"/>'
        '<circle class="end" cx="20" cy="14" r="4"/><circle class="end" cx="36.25" cy="14" r="4"/>'
        '<text x="20" y="38" text-anchor="middle">uncond</text>'
        '<text x="46" y="38">cond</text>'
        f'<circle class="here" cx="{at:.1f}" cy="14" r="7"/></svg>'
    )


class Pool:
    """Blocks of a paged cache, how many tables name each, and the tables."""

    def __init__(self) -> None:
        self.count = [0] * BLOCKS
        self.held: list[set[str]] = [set() for _ in range(BLOCKS)]
        self.tables: dict[str, list[int]] = {}
        self.length: dict[str, int] = {}
        self.filled = [0] * BLOCKS

    def begin(self, who: str, positions: int, shared: list[int] | None = None) -> None:
        """A prompt: the table begins with the blocks that it shares, which are full."""
        self.tables[who], self.length[who] = [], 0
        for block in shared or []:
            self._name(who, block)
            self.length[who] += PAGE
        while self.length[who] < positions:
            self.append(who)

    def append(self, who: str) -> None:
        """One position more; where the last page is full, the first free block is taken."""
        if self.length[who] == PAGE * len(self.tables[who]):
            self._name(who, self.count.index(0))
        self.length[who] += 1
        last = self.tables[who][-1]
        self.filled[last] = self.length[who] - PAGE * (len(self.tables[who]) - 1)

    def end(self, who: str) -> None:
        """Give the table back: a block that no other table names is free."""
        for block in self.tables.pop(who):
            self.count[block] -= 1
            self.held[block].discard(who)
            if not self.count[block]:
                self.filled[block] = 0
        del self.length[who]

    def _name(self, who: str, block: int) -> None:
        self.tables[who].append(block)
        self.count[block] += 1
        self.held[block].add(who)

    def html(self) -> str:
        """The tables, and the pool below them."""
        rows = "".join(
            f'<p><b class="of-{who}">{who}</b> {self.length[who]} positions <span>'
            f"{''.join(f'<i>{block}</i>' for block in table)}</span></p>"
            for who, table in self.tables.items()
        )
        boxes = ""
        for block in range(BLOCKS):
            owners = "".join(sorted(self.held[block]))
            places = "".join(
                f'<i class="of-{owners}"></i>' if place < self.filled[block] else "<i></i>"
                for place in range(PAGE)
            )
            count = self.count[block]
            said = f"{count} ref{'s' * (count != 1)}" if count else "free"
            boxes += f"<div><b>{block}</b><span>{places}</span><small>{said}</small></div>"
        return f'<div class="tables">{rows}</div><div class="pool">{boxes}</div>'


def paging(_cache: Path, _static: Path) -> Moving:
    """Three requests take blocks, share one, and give them back."""
    pool = Pool()
    steps: list[tuple[str, Callable[[], Any]]] = [
        (
            "A's prompt has 6 positions. It takes two blocks; the second is half full.",
            lambda: pool.begin("A", 6),
        ),
        (
            "B's prompt begins with the same 4 tokens. Its table names block 0, too: two tables, one copy.",
            lambda: pool.begin("B", 6, shared=[0]),
        ),
        ("A writes a token. It goes to block 1, after the others.", lambda: pool.append("A")),
        ("B writes a token, into its own block.", lambda: pool.append("B")),
        ("A writes a token: block 1 is full.", lambda: pool.append("A")),
        ("A writes a token: only now it takes a third block.", lambda: pool.append("A")),
        ("C arrives with 5 positions of another text. It shares nothing.", lambda: pool.begin("C", 5)),
        (
            "A ends. Its own blocks are free; block 0 stays, since B's table names it.",
            lambda: pool.end("A"),
        ),
        ("B writes a token: its last block is full.", lambda: pool.append("B")),
        ("B writes a token, and takes a block that A gave back.", lambda: pool.append("B")),
        ("C writes a token. Any free block would do: there are no gaps.", lambda: pool.append("C")),
    ]
    empty = f"The pool is empty: {BLOCKS} blocks, each with {PAGE} places."
    states = [f'<p class="told">{empty}</p>{pool.html()}']
    for said, does in steps:
        does()
        states.append(f'<p class="told">{said}</p>{pool.html()}')
    return "Blocks, taken one at a time", "Step through three requests.", states, 2


def batching(_cache: Path, _static: Path) -> Moving:
    """The same requests, in batches that wait for their longest, and in places that are filled again."""
    ways = {"A batch waits for its longest request": _by_batches(), "A place is filled again": _by_places()}
    steps = max(len(row) for rows in ways.values() for row in rows)
    states = []
    for step in range(1, 1 + steps):
        grids = ""
        for name, rows in ways.items():
            made = sum(cell >= 0 for row in rows for cell in row[:step])
            past = min(step, max(map(len, rows)))
            cells = "".join(
                f"<span>{''.join(_cell(row, at, step) for at in range(steps))}</span>" for row in rows
            )
            share = f"{made} tokens in {past} steps: {made / (SLOTS * past):.0%} of the places are used"
            grids += f'<div><b>{name}</b><div class="places">{cells}</div><small>{share}</small></div>'
        states.append(f'<div class="lanes">{grids}</div>')
    said = f"{len(LENGTHS)} requests, {SLOTS} places; a color is a request, a column a step."
    return "Who waits for whom", said, states, len(states) - 1


def _cell(row: list[int], at: int, step: int) -> str:
    if at >= min(step, len(row)):
        return "<i></i>"
    return f'<i class="r{row[at]}">{row[at] + 1}</i>' if row[at] >= 0 else '<i class="idle"></i>'


def _by_batches() -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(SLOTS)]
    for first in range(0, len(LENGTHS), SLOTS):
        batch = range(first, min(first + SLOTS, len(LENGTHS)))
        longest = max(LENGTHS[one] for one in batch)
        for place, row in enumerate(rows):
            one = first + place
            length = LENGTHS[one] if one in batch else 0
            row += [one] * length + [-1] * (longest - length)
    return rows


def _by_places() -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(SLOTS)]
    for one, length in enumerate(LENGTHS):
        min(rows, key=len).extend([one] * length)
    longest = max(map(len, rows))
    return [row + [-1] * (longest - len(row)) for row in rows]


def caching(_cache: Path, _static: Path) -> Moving:
    """The bundled language model writes; what goes in, what is kept, and what would be computed without."""
    model, tokenizer = load_language_model("bundled", "cpu")
    ids = tokenizer("tom has a red ball .", return_tensors="pt").input_ids
    with torch.no_grad():
        written = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=9, min_new_tokens=9, do_sample=False
        )[0]
    words = [tokenizer.decode([token]).strip() or "␣" for token in written.tolist()]
    config, prompt = model.config, ids.shape[1]
    head = config.hidden_size // config.num_attention_heads
    a_token = 2 * config.num_hidden_layers * config.num_key_value_heads * head * model.dtype.itemsize
    calls = len(words) - prompt
    without = list(accumulate(prompt + call for call in range(calls)))
    most = without[-1]
    states = []
    for call in range(calls):
        kept, goes = (0, prompt) if not call else (prompt + call - 1, 1)
        end = kept + goes
        chips = "".join(
            f'<i class="{"kept" if at < kept else "goes"}">{escape(words[at])}</i>' for at in range(end)
        )
        chips += f'<i class="out">{escape(words[end])}</i>'
        bars = "".join(
            f'<p><span>{name}</span><i style="width: {60 * value / most:.1f}%"></i><b>{value}</b></p>'
            for name, value in (("with the cache", end), ("without", without[call]))
        )
        goes_in = f"{goes} tokens go" if goes > 1 else "1 token goes"
        states.append(
            f'<p class="told">Call {call + 1}: {goes_in} in. After it the cache holds {end} tokens,'
            f' {end * a_token:,} bytes.</p><p class="chips">{chips}</p>'
            f'<div class="counts"><p><b>Tokens computed so far</b></p>{bars}</div>'
        )
    said = "The bundled model writes. Filled: in the cache. Orange: goes in. Framed: comes out."
    return "One token in, all others kept", said, states, 3


MOVING: dict[str, Callable[[Path, Path], Moving]] = {
    "lab03-guidance": guidance,
    "lab13-kv-cache": caching,
    "lab14-batching": batching,
    "lab15-paged-attention": paging,
}
"""Lab -> what makes its section's moving figure."""
