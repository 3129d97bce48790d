"""Links between labs and handbook lead somewhere, in the repository and in the learners' tree."""

import re
from pathlib import Path

from inferlab.grading.labtext import read_blocks
from inferlab.grading.publish import relinked

ROOT = Path(__file__).parents[2]
LABS = [path for path in (ROOT / "notebooks").glob("*/*.py") if path.stem == path.parent.name]
LINK = re.compile(r"\]\((\.\.?/[^)#\s]+)")


def test_a_labs_links_to_the_handbook_lead_there_from_release_and_from_the_published_tree():
    for path in LABS:
        text = "\n".join(b.cell.source for b in read_blocks(path.read_text("utf-8"), path.name)[1]
                         if b.cell.cell_type == "markdown")
        for link in LINK.findall(text):
            assert (ROOT / "release" / path.stem / link).resolve().is_relative_to(ROOT / "handbook"), (path.stem, link)
            assert (ROOT / "handbook" / Path(link).name).exists(), (path.stem, link)
        for link in LINK.findall(relinked(text)):
            assert (Path("/tree") / path.stem / link).resolve().is_relative_to("/tree/handbook"), (path.stem, link)


def test_the_handbooks_links_to_labs_lead_there():
    labs = {path.stem for path in LABS}
    for page in (ROOT / "handbook").glob("*.md"):
        for link in LINK.findall(relinked(page.read_text("utf-8"))):
            if link.endswith(".ipynb"):
                parts = Path(link).parts
                assert parts[0] == ".." and parts[1] in labs and parts[2] == f"{parts[1]}.ipynb", (page.name, link)
