"""nbgrader's configuration, as the course's own `nbgrader_config.py` gives it.

Releasing, feedback and the sandbox's limits read it here. `nbgrader autograde` reads the same file by itself.
"""

from pathlib import Path

from traitlets.config import Config, PyFileConfigLoader

from inferlab.grading.course import Course, own_tools_first


def nbgrader_config(course: Course, root: Path, db_url: str) -> Config:
    """The settings of the course's `nbgrader_config.py`, for nbgrader to work in `root` with `db_url`."""
    own_tools_first()
    config = Config()
    if (course.root / "nbgrader_config.py").exists():
        config.merge(PyFileConfigLoader("nbgrader_config.py", path=str(course.root)).load_config())
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = db_url
    return config
