"""The handbook: numbers and diagrams are what its code makes, and GitHub and JupyterLab show every page."""

import base64
import importlib.util
import re
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

HANDBOOK = Path(__file__).parents[2] / "handbook"
PAGES = sorted([*HANDBOOK.glob("lab*.md"), *HANDBOOK.glob("practice*.md")])
PICTURE = re.compile(r"^!\[([^\]]+)\]\((figures/[^)]+\.svg)\)$", re.MULTILINE)
PRINTED_ONLY = {"two tiles of 512"}
"""Numbers that a script prints for whoever writes a page; no page tells them."""

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
MOST_APART = {"lab03-guidance": [0.5, 0.5, 0.5, 0.5, 4]}
"""Of 255, on average over each picture of a page: far too much guidance makes 3 of the last bit. Else 0.5."""


def code_of(page: Path):
    """The script in `handbook/figures` that draws the page's diagram, as a module."""
    picture = PICTURE.search(page.read_text("utf-8"))[2]
    scripts = (HANDBOOK / "figures").glob("*.py")
    script = next(path for path in scripts if f"handbook/{picture}" in path.read_text("utf-8"))
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Figure(NamedTuple):
    """A diagram as it is compared: the commands of its paths, their numbers, and the pictures in it."""

    commands: list[str]
    numbers: list[float]
    pictures: list[np.ndarray]


def figure_of(path):
    text = path.read_text("utf-8")
    paths = re.findall(r'\sd="([^"]*)"', text)
    pictures = re.findall(r"data:image/png;base64,([^\"]*)", text)
    return Figure(
        [re.sub(NUMBER, "#", one) for one in paths],
        [float(number) for one in paths for number in re.findall(NUMBER, one)],
        [np.asarray(Image.open(BytesIO(base64.b64decode(one))).convert("RGB"), float) for one in pictures])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_the_numbers_and_shows_the_diagram_that_its_code_makes(page, tmp_path):
    module, text = code_of(page), page.read_text("utf-8")
    flowing = " ".join(line.removeprefix("> ") for line in text.split("\n"))
    flowing = " ".join(flowing.split())
    missing = {what: number for what, number in module.numbers().items() if number not in flowing}
    assert not set(missing) - PRINTED_ONLY, missing
    module.draw(tmp_path / "drawn.svg")
    drawn, committed = map(figure_of, (tmp_path / "drawn.svg", HANDBOOK / PICTURE.search(text)[2]))
    assert drawn.commands == committed.commands
    # Another processor rounds otherwise: a curve moves by a hundredth of a point, a picture by one of 255.
    np.testing.assert_allclose(drawn.numbers, committed.numbers, atol=0.1)
    assert [picture.shape for picture in drawn.pictures] == [picture.shape for picture in committed.pictures]
    most = MOST_APART.get(page.stem, [0.5] * len(drawn.pictures))
    for new, old, apart in zip(drawn.pictures, committed.pictures, most, strict=True):
        assert abs(new - old).mean() < apart


@pytest.mark.parametrize("page", sorted(HANDBOOK.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_is_plain_markdown_with_pictures_that_exist(page):
    text = page.read_text("utf-8")
    assert ":::" not in text, "a MyST directive: JupyterLab and GitHub show it as text"
    for description, picture in PICTURE.findall(text):
        assert (HANDBOOK
                / picture).exists() and len(description) > 40, "a picture says in words what it shows"
    assert text.count("![") == len(PICTURE.findall(text)) == (page in PAGES)


def test_the_readmes_gpu_figures_stand_on_the_page_of_gpu_numbers():
    readme = (HANDBOOK.parent / "README.md").read_text("utf-8")
    table = readme[readme.index("| what | H100 80 GB"):].split("\n\n")[0]
    cells = "\n".join(re.sub(r"^\|[^|]*\|", "", line) for line in table.split("\n")[2:])
    figures = re.findall(r"\d+(?:\.\d+)?(?= TB/s| TFLOP/s| ms| times|;|,| \|)", cells)
    page = re.split(r"[^\d.]+", (HANDBOOK / "gpu-numbers.md").read_text("utf-8"))
    assert len(figures) > 15 and not set(figures) - set(page)
