"""Links between labs and handbook lead somewhere, in the repository and in the learners' tree."""

import re
import subprocess
from pathlib import Path

from inferlab.grading.authoring.hidden_tests import read_lesson
from inferlab.grading.authoring.publish import relinked
from tests import ROOT

LABS = [path for path in (ROOT / "notebooks").glob("*/*.py") if path.stem == path.parent.name]
LINK = re.compile(r"\]\((\.\.?/[^)#\s]+)")


def test_a_labs_links_to_the_handbook_lead_there_from_release_and_from_the_published_tree():
    for path in LABS:
        text = "\n".join(b.cell.source for b in read_lesson(path)
                         if b.cell.cell_type == "markdown")
        for link in LINK.findall(text):
            there = (ROOT / "release" / path.stem / link).resolve()
            assert there.is_relative_to(ROOT / "handbook") and there.exists(), (path.stem, link)
        for link in LINK.findall(relinked(text)):
            there = (Path("/tree") / path.stem / link).resolve()
            assert there.is_relative_to("/tree/handbook"), (path.stem, link)


def test_the_handbooks_links_to_labs_lead_there():
    labs = {path.stem for path in LABS}
    for page in (ROOT / "handbook").glob("*.md"):
        for link in LINK.findall(relinked(page.read_text("utf-8"))):
            if link.endswith(".ipynb"):
                parts = Path(link).parts
                assert parts[0] == ".." and parts[1] in labs and parts[2] == f"{parts[1]}.ipynb", (page.name,
                                                                                                   link)


def test_the_handbooks_pictures_are_in_the_labs_as_well_with_the_same_words_for_who_cannot_see_them():
    picture = re.compile(r"!\[([^\]]*)\]\((?:\.\./\.\./handbook/)?(figures/[^)]*)\)")
    for path in LABS:
        page = ROOT / "handbook" / f"{path.stem}.md"
        lesson = "\n".join(b.cell.source for b in read_lesson(path) if b.cell.cell_type == "markdown")
        drawn = {name: alt for alt, name in picture.findall(page.read_text("utf-8") if page.exists() else "")}
        shown = {name: " ".join(alt.split()) for alt, name in picture.findall(lesson)}
        assert shown == drawn, path.stem


def test_every_link_between_files_of_the_repository_leads_somewhere():
    """The site's own pages are left out: their links are the site's, and its build checks them."""
    listing = ["git", "ls-files", "*.md", ":!site"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\n")[:-1]:
        for link in re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", (ROOT / name).read_text("utf-8")):
            assert ((ROOT / name).parent / link).exists(), f"{name} links {link}"
