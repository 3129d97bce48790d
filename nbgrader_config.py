"""Stock nbgrader with our execution inside it; see SECURITY.md for what the sandbox promises.

Set INFERLAB_NO_SANDBOX=1 (or `c.SandboxExecute.sandbox = False`) to grade without it: learners' code then runs as you.
"""

c = get_config()  # noqa: F821 - nbgrader provides it

c.CourseDirectory.course_id = "inferlab"

c.GenerateAssignment.create_assignment = True
c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.LockCells",
    "inferlab.grading.stubs.ClearLabSolutions",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Mend comes first, so that duplicated, deleted or forged cells and metadata cannot stop a submission or a batch.
c.Autograde.sanitize_preprocessors = [
    "inferlab.grading.preprocessors.Mend",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.exporter_class = "inferlab.grading.sourcebook.LenientExporter"
c.Autograde.autograde_preprocessors = [
    "inferlab.grading.preprocessors.SandboxExecute",
    "nbgrader.preprocessors.SaveAutoGrades",
    "inferlab.grading.preprocessors.FlagReview",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Deadlines and penalties come from course.toml and roster/extensions.csv (`inferlab late`).
c.AssignLatePenalties.plugin_class = "inferlab.grading.lateness.LatePolicyPlugin"

c.GenerateFeedback.exporter_class = "inferlab.grading.feedbackpage.FeedbackPage"
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "inferlab.grading.preprocessors.HideTests",
    "inferlab.grading.preprocessors.ShowModelAnswers",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
# What learners wrote is shown to instructors and learners as HTML: without their scripts.
c.HTMLExporter.sanitize_html = True  # outputs and raw cells
c.HTMLExporter.filters = {
    "markdown2html": "inferlab.grading.cleanhtml.markdown2html",  # Markdown cells: nbgrader's templates skip the line above
    "clean_html": "inferlab.grading.cleanhtml.clean",  # outputs and raw cells: nbconvert's own list has no tables, lists and breaks
}
