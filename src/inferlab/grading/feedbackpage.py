"""The page of feedback that a learner gets: nbgrader's, with each check's name in its contents and the reason for a late penalty."""

from datetime import datetime
from html import escape
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook

# As nbgrader's template writes them.
CHECK = '<a href="#{grade_id}">Test cell</a>'
PENALTY = "Late submission penalty"


class FeedbackPage(HTMLExporter):
    """For `c.GenerateFeedback.exporter_class` in `nbgrader_config.py`."""

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **options: Any) -> tuple[str, Any]:
        """The page, and nbconvert's resources. The contents stand before everything that a learner wrote."""
        page, resources = super().from_notebook_node(nb, resources, **options)
        for cell in nb.cells:
            if "check" in cell.metadata.get("inferlab", {}):
                line = CHECK.format(grade_id=escape(cell.metadata.nbgrader.grade_id))
                page = page.replace(line, line.replace("Test cell", escape(cell.metadata.inferlab.check)), 1)
        if reason := late_reason(resources["nbgrader"]):
            page = page.replace(PENALTY, f"{PENALTY}: {reason}", 1)
        return page, resources


def late_reason(where: dict[str, Any]) -> str:
    """Why a submission lost points for being late, from the gradebook; "" if it lost none or has no deadline."""
    with Gradebook(where["db_url"]) as gradebook:
        notebook = gradebook.find_submission_notebook(where["notebook"], where["assignment"], where["student"])
        submission, penalty = notebook.assignment, notebook.late_submission_penalty
        if not penalty or not notebook.score or submission.timestamp is None or submission.assignment.duedate is None:
            return ""
        return (f"handed in {_utc(submission.timestamp)}, deadline {_utc(submission.duedate)}: "
                f"{submission.total_seconds_late / 3600:.1f} h late, {penalty / notebook.score:.0%} of what was earned")


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
