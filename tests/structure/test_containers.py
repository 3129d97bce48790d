"""The container files name what is in the repository, and leave out what no image may hold.

`make lint` reads them with hadolint and against their schemas. No container engine is needed here.
"""

import json
import re
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests import ROOT

LINES = re.sub(r"\\\n\s*", "", (ROOT / "containers" / "Containerfile").read_text("utf-8")).splitlines()
COMPOSE = yaml.safe_load((ROOT / "containers" / "compose.yaml").read_text("utf-8"))
LEARNERS = "handbook/instructors/devcontainer.json"


def stages():
    """Stage -> its instructions as (word, rest); a stage that begins with another one has its user."""
    found = {}
    for line in LINES:
        if line.startswith("FROM "):
            stage = found[line.split(" AS ")[1]] = []
        if line[:1].isalpha():
            stage.append(tuple(line.split(maxsplit=1)))
    return found


def devcontainer(path):
    return json.loads((ROOT / path).read_text("utf-8"))


def test_every_image_has_a_python_that_the_tests_run_with():
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8"))
    tested = tests["jobs"]["test"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    bases = [rest.split()[0] for steps in stages().values() for word, rest in steps if word == "FROM"]
    images = [base for base in bases if base not in stages()] + [devcontainer(LEARNERS)["image"]]
    for image in images:
        version = re.fullmatch(r"docker\.io/library/python:(\d+\.\d+)-(slim-)?bookworm", image)[1]
        assert version in tested and SpecifierSet(project["requires-python"]).contains(version)


def test_what_is_copied_exists_and_is_let_through():
    ignored = (ROOT / "containers" / "Containerfile.dockerignore").read_text("utf-8").splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    copied = {name for line in LINES if line.startswith("COPY ") and "--from=" not in line
              for name in line.split()[1:-1] if not name.startswith("--")}
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)
    assert next(line for line in ignored if line and not line.startswith("#")) == "*"
    assert not any(name.startswith(("notebooks", "source")) for name in allowed), "answers and hidden tests"


def test_every_package_is_installed_within_the_constraints():
    pins = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()}
    installs = [command for line in LINES for command in line.split("&&") if "pip install" in command]
    assert len(installs) == 3
    for command in installs:
        assert "-c constraints.txt" in command or "-c /opt/inferlab/constraints.txt" in command
        names = [word.strip("'") for word in command.split("--no-cache-dir")[1].split()[2:]]
        names = [word for word in names if word != "--index-url" and not word.startswith(('"', "."))]
        assert {Requirement(name).name for name in names} <= pins


@pytest.mark.parametrize("target", ["course", "grading"])
def test_an_image_ends_as_another_user_than_root(target):
    assert [rest for word, rest in stages()[target] if word == "USER"][-1] == "1000"


def test_the_grading_host_builds_a_stage_and_is_reached_by_nobody_outside():
    services = COMPOSE["services"]
    built = [service["build"] for service in services.values() if "build" in service]
    assert {(step["dockerfile"], step["target"]) for step in built} == {
        ("containers/Containerfile", "grading")}
    assert "grading" in stages() and (ROOT / "containers" / built[0]["context"]).resolve() == ROOT
    assert COMPOSE["networks"] == {"grading": {"internal": True}}
    for name, service in services.items():
        assert service["networks"] == ["grading"] and "ports" not in service, name
    assert "tcp://scheduler:8786" in services["worker"]["command"]
    assert not services["worker"].get("volumes"), "a worker needs neither the course nor the gradebook"


@pytest.mark.parametrize("path", [".devcontainer/devcontainer.json", LEARNERS])
def test_a_devcontainer_opens_files_that_there_are(path, tmp_path):
    settings = devcontainer(path)
    opened = settings["customizations"]["codespaces"]["openFiles"]
    published = ROOT / ("release" if path == LEARNERS else "")
    assert all((published / name).is_file() for name in opened)
    if build := settings.get("build"):
        folder = ROOT / ".devcontainer"
        assert (folder / build["dockerfile"]).resolve() == ROOT / "containers" / "Containerfile"
        assert (folder / build["context"]).resolve() == ROOT and build["target"] in stages()


def test_the_sandbox_can_be_made_where_learners_code_runs_and_nothing_else_is_opened():
    needed = {"seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"}
    assert set(devcontainer(".devcontainer/devcontainer.json")["securityOpt"]) == needed
    assert set(COMPOSE["services"]["worker"]["security_opt"]) == needed
    assert not any("security_opt" in service for name, service in COMPOSE["services"].items()
                   if name != "worker")
