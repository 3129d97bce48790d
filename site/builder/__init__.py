"""Builds the course's website from the repository: `python site/build.py`.

`pages.py` turns what the repository holds (handbook, released notebooks, cards) into Sphinx's source pages.
`home.py`, `calculators.py`, `concepts.py`, `traces.py`, `model.py` and `cards.py` write the pages of their
names; `film.py`, `traces.py`, `live.py` and `model.py` run the bundled models, and `recorded.py` the
notebooks, whose results `outputs.py` puts into the labs' pages. `plots.py` and `drawing.py` turn what was
recorded on GPUs into pictures. `katex.py` draws formulas, `npm.py` has what comes from npm, and `checks.py`
reads the finished site: no answer in it, no broken link, nothing from another host.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "site"
BUILD = ROOT / "build"
PAGES, OUT, CACHE = BUILD / "site-pages", BUILD / "site", BUILD / "site-cache"
"""Sphinx's source, made new by each build; the finished site; what is slow to make, kept by its inputs'
digest."""
