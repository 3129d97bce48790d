"""Stock nbgrader with our execution inside it; see SECURITY.md for what the sandbox promises.

Set INFERLAB_NO_SANDBOX=1 (or `c.SandboxExecute.sandbox = False`) to grade without it: learners' code then
runs as you.
"""

from inferlab.grading.authoring.release_steps import RELEASE_PREPROCESSORS

c = get_config()  # noqa: F821 - nbgrader provides it

c.CourseDirectory.course_id = "inferlab"

c.GenerateAssignment.create_assignment = True
c.GenerateAssignment.preprocessors = list(RELEASE_PREPROCESSORS)

# The exporter reads and mends a submission, so that duplicated, deleted or forged cells and metadata cannot
# stop it or a batch. SandboxExecute runs it and records its marks whole, with the penalty for lateness. It
# takes the deadline from course.toml and the extension that the gradebook has. `inferlab late` writes
# extensions and free days into the gradebook: run it after `nbgrader autograde`.
c.Autograde.exporter_class = "inferlab.grading.gradebook.nbgrader_autograde.SubmissionExporter"
c.Autograde.sanitize_preprocessors = []
c.Autograde.autograde_preprocessors = [
    "inferlab.grading.gradebook.nbgrader_autograde.SandboxExecute",
    "nbgrader.preprocessors.CheckCellMetadata",
]

c.GenerateFeedback.exporter_class = "inferlab.grading.reporting.feedback_page.FeedbackPage"
c.GenerateFeedback.preprocessors = []
# What learners wrote is shown to instructors in formgrader as HTML: without their scripts.
c.HTMLExporter.sanitize_html = True  # outputs and raw cells
c.HTMLExporter.filters = {
    # Markdown cells: nbgrader's templates skip the line above.
    "markdown2html": "inferlab.grading.reporting.clean_html.markdown2html",
    # Outputs and raw cells: nbconvert's own list has no tables, lists and breaks.
    "clean_html": "inferlab.grading.reporting.clean_html.clean",
}
