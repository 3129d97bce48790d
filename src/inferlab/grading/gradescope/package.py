"""Makes the zip of a lab's autograder for Gradescope: scripts, this package as a wheel, and the lab's tests.
"""

import json
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from inferlab.grading.authoring.build import build_source
from inferlab.grading.authoring.publish import build_wheel
from inferlab.grading.course import Course, CourseError
from inferlab.grading.notebook import dumps
from inferlab.grading.sandbox.limits import Limits

SCRIPTS = Path(__file__).parent
VISIBILITY = ("visible", "after_due_date", "after_published", "hidden")
"""When learners see what a check found."""
EXECUTABLE = 0o100755 << 16


@dataclass(frozen=True)
class Autograder:
    """What was packed: the zip, its size in bytes, and the points that the lab gives."""

    path: Path
    size: int
    points: float


def pack(course: Course, lab: str, path: Path, *, limits: Limits | None = None,
         visibility: str = VISIBILITY[1],
         package_root: Path | None = None) -> Autograder:
    """Write a lab's autograder to `path`.

    Args:
        limits: what one submission may use.
        visibility: when learners see what the checks found, one of `VISIBILITY`.
        package_root: the repository whose package is carried; the course's own if None.

    Raises:
        CourseError: when the lab or the package cannot be built.
    """
    if visibility not in VISIBILITY:
        raise CourseError(f"'{visibility}' is not when a check is shown; there is: {', '.join(VISIBILITY)}")
    source = build_source(course, course.require(lab))
    root = package_root or course.root
    settings = {"lab": lab, "limits": (limits or Limits()).as_dict(), "visibility": visibility}
    points = sum(float(cell["metadata"]["nbgrader"]["points"]) for cell in source["cells"]
                 if cell["metadata"].get("nbgrader", {}).get("grade"))
    with tempfile.TemporaryDirectory(prefix="inferlab-gradescope-") as temporary:
        wheel = build_wheel(root, Path(temporary), grading=True)
        partial = path.with_name(f".{path.name}.part")
        try:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
                for name in ("setup.sh", "run_autograder"):
                    about = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
                    about.external_attr = EXECUTABLE
                    archive.writestr(about, (SCRIPTS / name).read_text("utf-8"))
                archive.write(wheel, wheel.name)
                if (root / "constraints.txt").exists():
                    archive.write(root / "constraints.txt", "constraints.txt")
                archive.writestr("lab.ipynb", dumps(source))
                archive.writestr("settings.json", json.dumps(settings, indent=1))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    return Autograder(path, path.stat().st_size, points)
