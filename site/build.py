"""Builds the website into build/site: `python site/build.py` (`make site`)."""

from __future__ import annotations

import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from sphinx.cmd.build import build_main

from builder import BUILD, CACHE, OUT, PAGES, ROOT, SITE
from builder.calculators import write_calculators
from builder.cards import write_cards
from builder.checks import broken_in, leaks_in
from builder.concepts import write_map
from builder.figures import put_in
from builder.film import film, sentence
from builder.glossary import write_glossary
from builder.home import write_home
from builder.markup import mend
from builder.model import model_files, write_model
from builder.npm import copy_assets, install
from builder.pages import write_labs, write_pages
from builder.recorded import Recording
from builder.traces import write_player
from inferlab.grading.course import Course


def main() -> int:
    """Build, then read what was built. Returns 0, or 1 with the reasons on stderr; a site with a fault is
    taken away."""
    began = time.monotonic()
    install()
    course = Course.open(ROOT)
    for folder in (PAGES, OUT, BUILD / "site-doctrees"):
        shutil.rmtree(folder, ignore_errors=True)
    recording = Recording(CACHE, {lab: course.release(lab) for lab in course.labs})
    recording.begin()
    # Forked before torch has computed anything. The export takes as long as all that stands beside it.
    with ProcessPoolExecutor(1, get_context("fork")) as beside:
        exported = beside.submit(model_files, CACHE)
        shutil.copytree(SITE / "static", PAGES / "_static")
        copy_assets(PAGES / "_static")
        order = write_pages(course, CACHE, PAGES)
        write_map(course, order, PAGES)
        write_glossary(course, order, PAGES)
        write_calculators(order, PAGES)
        write_player(CACHE, PAGES)
        cards = write_cards(course, order, PAGES)
        films = PAGES / "_static" / "film"
        write_home(course, order, cards, film(CACHE, films), sentence(CACHE, films), PAGES)
        write_model(exported.result(), PAGES)
        write_labs(course, order, recording.outputs(), PAGES)
    options = "-b html -j auto -q -W --keep-going".split()
    failed = build_main([*options, "-c", str(SITE), "-d", str(BUILD / "site-doctrees"), str(PAGES), str(OUT)])
    if failed:
        return 1
    shutil.rmtree(OUT / "_sources", ignore_errors=True)
    mend(OUT)
    put_in(OUT)
    (OUT / ".nojekyll").touch()
    faults = [*map(str, leaks_in(OUT, course)), *broken_in(OUT)]
    if faults:
        shutil.rmtree(OUT)
        print("the site was not kept:", *faults, sep="\n  ", file=sys.stderr)
        return 1
    pages = sum(1 for _ in OUT.rglob("*.html"))
    print(f"build/site: {pages} pages in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
