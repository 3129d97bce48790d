"""A lab's words and claims as its text has them; a decision of a review becomes one of its claims."""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

from inferlab.grading.authoring.hidden_tests import EXPLANATIONS
from inferlab.grading.course import Course
from inferlab.lab.explain import Words
from inferlab.lab.explain.claims import ClaimsError


class _AnyFact(dict[str, object]):
    """Takes every `{name}` in a claim for a fact of the run; what it is worth is known when grading."""

    def __contains__(self, _name: object) -> bool:
        return True

    def __missing__(self, _name: str) -> None:
        return None


class LabClaims:
    """What the explanations of a lab are held against: `words`, and the claims of each field.

    Raises `ClaimsError` where the lab explains nothing.
    """

    def __init__(self, course: Course, lab: str) -> None:
        self.path: Path = course.text(lab).with_name(EXPLANATIONS)
        self._text = self.path.read_text("utf-8") if self.path.exists() else ""
        calls = [*_calls(self._text)]
        listed = [call.args for name, call in calls if name == "Words"]
        if not listed:
            raise ClaimsError(f"{lab} has no explanation that is composed of words")
        self.words = Words(*map(ast.literal_eval, listed[0]))
        self._places: dict[str, ast.expr] = {
            ast.literal_eval(call.args[1]): call.args[2] for name, call in calls if name == "grade"}

    @property
    def fields(self) -> dict[str, str]:
        """Field -> its claims, as they stand in the text."""
        return {field: ast.literal_eval(place).strip("\n") for field, place in self._places.items()}

    def add(self, field: str, heading: str, pattern: str) -> None:
        """Write one more pattern below a heading of a field, which is made where it is not there.

        A pattern that stands there already is not written again.

        Args:
            heading: `true`, `wanted: QUESTION` or `false: MESSAGE`.
            pattern: `who | verb | what | added`; a review's `who · verb · what` is one, too.

        Raises:
            ClaimsError: no such field, another form, or a word that the field does not offer. Nothing is
                written then.
        """
        if field not in self._places:
            raise ClaimsError(f"no field {field!r}; there is {', '.join(self._places)}")
        lines = self.fields[field].split("\n")
        more = textwrap.wrap(pattern.replace(" · ", " | "), 100, initial_indent=" " * 4,
                             subsequent_indent=" " * 8, break_on_hyphens=False)
        begin = lines.index(heading) if heading in lines else len(lines)
        below = range(begin + 1, len(lines))
        end = next((number for number in below if not lines[number][:1].isspace()), len(lines))
        if begin == end:
            more = [heading, *more]
        if more[0] not in lines[begin:end]:
            lines[end:end] = more
        self.words.claims(field, "\n".join(lines), _AnyFact())
        place, text = self._places[field], self._text.split("\n")
        text[place.lineno:(place.end_lineno or 0) - 1] = lines
        self.path.write_text("\n".join(text), "utf-8")


def _calls(text: str) -> Iterator[tuple[str, ast.Call]]:
    """(name of the function or method, the call) for every call in a text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield (node.func.id if isinstance(node.func, ast.Name) else node.func.attr), node
