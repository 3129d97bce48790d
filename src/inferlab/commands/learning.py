"""What `inferlab` does for learners, and its demonstration."""

import argparse
from pathlib import Path

from .shared import LOOK, OK, Answer, Fault, opened_course, show_progress


def check(arguments: argparse.Namespace) -> Answer:
    """`inferlab check`."""
    from dataclasses import asdict

    from inferlab.lab.checks.checklist import total
    from inferlab.lab.handin.self_check import check_notebook

    try:
        result = check_notebook(arguments.notebook, timeout=arguments.timeout, progress=show_progress)
    except UnicodeDecodeError as error:
        raise Fault(f"{arguments.notebook} is not a notebook: it is not UTF-8 text") from error
    lines = [report.headline for report in result.reports] + [total(result.lab, result.reports)]
    missing = ["still missing:", *(f"  - {text}" for text in result.missing)]
    lines += missing if result.missing else ["nothing is missing"]
    return (OK if result.complete else LOOK), "\n".join(lines), asdict(result)


def cards(arguments: argparse.Namespace) -> Answer:
    """`inferlab cards`."""
    from inferlab.lab.cards import load_cards, print_view

    deck = load_cards(*arguments.sources)
    to = arguments.to or Path(f"{Path(arguments.sources[0]).stem}.cards.html")
    to.write_text(print_view(deck), "utf-8")
    count = len(deck.cards)
    return OK, f"{count} cards are in {to}: open it and print", {"file": str(to), "cards": count}


def demo(arguments: argparse.Namespace) -> Answer:
    """`inferlab demo`."""
    from inferlab.grading.demo import demo

    result = demo(opened_course(arguments), lab=arguments.lab, folder=arguments.folder, say=show_progress)
    return (OK if result.right else LOOK), result.text, result.as_dict()
