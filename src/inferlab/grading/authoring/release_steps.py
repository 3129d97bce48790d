"""Our steps of `nbgrader generate_assignment`: what is cut out of a lab before learners get it."""

from nbformat import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions

from inferlab.grading.stubs import clear_explanation, is_explanation, without_hidden_tests


class ClearLabSolutions(ClearSolutions):
    """nbgrader's `ClearSolutions`, with a stub of its own for `%%explain` cells."""

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int
                        ) -> tuple[NotebookNode, dict]:
        """Clear one cell; an explanation keeps its field names, everything else is nbgrader's affair."""
        if cell.cell_type == "code" and is_explanation(cell.source):
            cell.source = clear_explanation(cell.source)
            return cell, resources
        return super().preprocess_cell(cell, resources, cell_index)


class ClearLabHiddenTests(ClearHiddenTests):
    """nbgrader's `ClearHiddenTests`; a check whose parts are cut out keeps their number."""

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int
                        ) -> tuple[NotebookNode, dict]:
        """Clear one cell."""
        if cell.cell_type == "code":
            cell.source = without_hidden_tests(cell.source)
        return super().preprocess_cell(cell, resources, cell_index)


# What `c.GenerateAssignment.preprocessors` must be: nbgrader's own list with two steps that are ours.
RELEASE_PREPROCESSORS = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.LockCells",
    "inferlab.grading.authoring.release_steps.ClearLabSolutions",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "inferlab.grading.authoring.release_steps.ClearLabHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
]
