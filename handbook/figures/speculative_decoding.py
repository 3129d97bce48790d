"""Makes the diagram and the numbers of the handbook's section on speculative decoding.

    python handbook/figures/speculative_decoding.py      writes handbook/figures/lab16-round.svg, prints the numbers
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

from inferlab.lab.plots.style import save_svg

HERE = Path(__file__).parent
P, Q = (0.5, 0.3, 0.2), (0.2, 0.5, 0.3)
"""Target and draft probabilities of the worked example, over three tokens."""


def expected_tokens(a: float, gamma: int) -> float:
    """Tokens a target pass: 1 + a + ... + a**gamma."""
    return sum(a**n for n in range(gamma + 1))


def best_gamma(a: float, c: float, slope: float = 0.0, most: int = 30) -> tuple[int, float]:
    """The number of drafted tokens with the most tokens for the time of one target pass, and how many these are; 0 if none."""
    speeds = {0: 1.0} | {g: expected_tokens(a, g) / (g * c + 1 + slope * g) for g in range(1, most + 1)}
    best = max(speeds, key=speeds.get)
    return best, speeds[best]


def emitted(rule: str) -> tuple[float, ...]:
    """Distribution of the first emitted token in the worked example: by the exact rule, with a fresh replacement, or by an ensemble."""
    wanted = [0.8 * p + 0.2 * q for p, q in zip(P, Q, strict=True)] if rule == "ensemble" else P
    kept = [min(p, q) for p, q in zip(wanted, Q, strict=True)]
    rest = P if rule == "fresh" else [max(p - q, 0.0) for p, q in zip(P, Q, strict=True)]
    rejected = 1 - sum(kept)
    return tuple(k + rejected * r / sum(rest) for k, r in zip(kept, rest, strict=True))


def numbers() -> dict[str, str]:
    """Every computed number of the handbook's section, as it stands in the text."""
    gamma, speed = best_gamma(0.8, 0.05)
    small, big = best_gamma(0.7, 0.04), best_gamma(0.9, 0.35)
    return {
        "overlap of the example": f"{sum(min(p, q) for p, q in zip(P, Q, strict=True)):.1f}",
        "exact rule": ", ".join(f"{share:.2f}" for share in emitted("exact")),
        "fresh rule": ", ".join(f"{share:.2f}" for share in emitted("fresh")),
        "ensemble rule": ", ".join(f"{share:.2f}" for share in emitted("ensemble")),
        "tokens a pass at 0.8 and 4": f"{expected_tokens(0.8, 4):.2f} tokens",
        "tokens a pass at 0.8 and 8": f"{expected_tokens(0.8, 8):.2f} tokens",
        "limit at 0.8": f"{1 / (1 - 0.8):.0f} tokens",
        "best gamma at 0.8, c 0.05": f"{gamma} drafted tokens and {speed:.2f} tokens",
        "before and after fine-tuning": f"{best_gamma(0.6, 0.05)[1]:.2f} tokens in the time of one at $a=0.6$ and $c=0.05$ to {speed:.2f} at $a=0.8$",
        "small draft": f"{small[1]:.2f} with {small[0]}",
        "big draft": f"{big[1]:.2f} with {big[0]}",
        "compute-bound": f"{expected_tokens(0.8, 4) / (4 * 0.05 + 5):.2f}",
    }


def draw(path: Path) -> None:
    """One round: what the draft writes, what the target's single pass reads, what stays."""
    rows = (
        ("draft writes, one by one", ["", "b", "c", "d", "e"]),
        ("target reads, at once", ["a", "b", "c", "d", "e"]),
        ("rule", ["", "keep", "keep", "reject", "unseen"]),
        ("emitted", ["", "b", "c", "x", ""]),
        ("target's cache keeps", ["a", "b", "c", "", ""]),
    )
    colors = {"keep": "#5b8db8", "reject": "#d55e00", "unseen": "0.85"}
    fig, axis = plt.subplots(figsize=(7.6, 2.9))
    for y, (label, cells) in enumerate(reversed(rows)):
        axis.text(-0.25, y + 0.35, label, ha="right", va="center", fontsize=10)
        for x, text in enumerate(cells):
            if text:
                axis.add_patch(Rectangle((x, y), 0.92, 0.7, fc=colors.get(text, "white"), ec="#1b3a5c", lw=1.3,
                                         hatch="//" if text == "reject" else ""))
                axis.text(x + 0.46, y + 0.35, text, ha="center", va="center", fontsize=10,
                          bbox={"fc": "white", "ec": "none", "pad": 1} if text == "reject" else None)
    axis.set(xlim=(-3.2, 5.1), ylim=(-0.1, 4.9))
    axis.set_axis_off()
    fig.tight_layout()
    save_svg(fig, path)


if __name__ == "__main__":
    draw(HERE / "lab16-round.svg")
    for name, value in numbers().items():
        print(f"{name:28s} {value}")
