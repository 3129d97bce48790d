"""Rules that a lab's text must follow, checked before anything is built from it.

A test cell runs in the grader, not where the learner's code runs: so it may use nothing but its own imports,
what it builds itself and `Check`. Each finding names the line in the lab's text.
"""

import ast
import builtins
import symtable
from dataclasses import dataclass

from inferlab.grading.stubs import HIDDEN, SOLUTION, RegionError, is_explanation, region_lines, split_regions

from .lab_text import Block, LabTextError, checks_of, expand
from .wrong_answers import WRONG_ANSWERS, WrongAnswer

LAB_PACKAGES = ("inferlab.trace", "inferlab.models", "inferlab.lab")
WRONG_ANSWERS_WANTED = 1
DIFFICULTIES = (1, 2, 3)


@dataclass(frozen=True)
class Finding:
    """One broken rule: the line of the lab's text where its cell begins, and what is wrong."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


def python_of(source: str) -> str:
    """A code cell's Python: magics and shell lines out, an explanation empty."""
    if is_explanation(source):
        return ""
    return "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.split("\n"))


def bound_names(source: str) -> list[str]:
    """Names that a cell binds at its top level, in order. Raises `SyntaxError`."""
    top = symtable.symtable(python_of(source), "cell", "exec")
    return [symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()]


def free_names(source: str) -> set[str]:
    """Names that a cell reads and neither binds nor finds among Python's builtins. Raises `SyntaxError`."""
    top = symtable.symtable(python_of(source), "cell", "exec")
    used: set[str] = set()
    tables = [top]
    while tables:
        table = tables.pop()
        used |= {s.get_name() for s in table.get_symbols() if s.is_referenced()
                 and (table is top or s.is_global())}
        tables.extend(table.get_children())
    return used - set(bound_names(source)) - set(dir(builtins)) - {"__name__", "__file__"}


def imported_modules(source: str) -> set[str]:
    """Full names of the modules that a cell imports, at any depth of its code."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(python_of(source))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" if node.module == "inferlab" else node.module
                      for alias in node.names}
    return found


def lint(blocks: list[Block], wrong: list[WrongAnswer] | None = None) -> list[Finding]:
    """Every broken rule of a lab, in order of lines; `wrong` (its wrong answers) is checked when given."""
    findings: list[Finding] = []
    seen: dict[str, int] = {}
    points: dict[str, float] = {}
    lines: dict[str, int] = {}
    for block in blocks:
        try:
            full = expand(block.cell.metadata)
        except LabTextError as error:
            findings.append(Finding(block.line, str(error)))
            continue
        grade_id = full.get("nbgrader", {}).get("grade_id")
        if grade_id in seen:
            findings.append(Finding(block.line,
                                    f"'{grade_id}' is already the name of the cell at line {seen[grade_id]}"))
        if grade_id:
            seen[grade_id] = block.line
        if full.get("nbgrader", {}).get("grade"):
            points[full["inferlab"]["check"]] = full["nbgrader"]["points"]
        elif grade_id:
            lines[grade_id] = block.line
        findings += [Finding(block.line, message) for message in _cell(block, full)]
    owners = checks_of(blocks)
    declared = {str(b.cell.metadata[k]) for b in blocks for k in ("exercise", "explain")
                if k in b.cell.metadata}
    for owner, checks in owners.items():
        if owner not in declared:
            findings.append(Finding(seen[f"check-{checks[0]}"],
                                    f"check of '{owner}', which no exercise is called"))
        elif not checks:
            findings.append(Finding(lines[owner], f"'{owner}' has no check cell after it"))
    if wrong is not None:
        findings += _wrong(wrong, declared, lines, points)
    return sorted(findings, key=lambda finding: finding.line)


def _cell(block: Block, full: dict) -> list[str]:
    """What is wrong with one cell on its own."""
    source, inferlab = block.cell.source, full.get("inferlab", {})
    messages = []
    for markers in (SOLUTION, HIDDEN):
        try:
            has_region = len(split_regions(source, markers)) > 1
        except RegionError as error:
            messages.append(str(error))
            continue
        if has_region and markers is SOLUTION and not ({"exercise", "explain"} & set(inferlab)):
            messages.append("a solution region outside an exercise: declare exercise=\"...\" in the cell's "
                            "first line")
        if has_region and markers is HIDDEN and "check" not in inferlab:
            messages.append("hidden tests outside a check: declare check=\"...\" points=N in the cell's "
                            "first line")
        if not has_region and markers is SOLUTION and ({"exercise", "explain"} & set(inferlab)):
            messages.append("an exercise without ### BEGIN SOLUTION ... ### END SOLUTION")
    if "difficulty" in inferlab and inferlab["difficulty"] not in DIFFICULTIES:
        messages.append(f"difficulty={inferlab['difficulty']!r}, but it is one of "
                        f"{', '.join(map(str, DIFFICULTIES))}")
    if "minutes" in inferlab and not (isinstance(inferlab["minutes"], int | float)
                                      and inferlab["minutes"] > 0):
        messages.append(f"minutes={inferlab['minutes']!r}, but it is a number above zero")
    if block.cell.cell_type != "code":
        return [*messages, *["an exercise or check must be a code cell"] * bool(inferlab)]
    if any(line.startswith("%%") for line in source.split("\n")[1:]):
        messages.append("a line after the cell's first begins with %%: the text form reads a comment that "
                        "begins so, "
                        "such as '# %%explain ...', as a magic; word the comment differently")
    if "explain" in inferlab and not is_explanation(source):
        messages.append(f"an explanation begins with %%explain {inferlab['explain']}")
    try:
        modules = imported_modules(source)
        bound = bound_names(source)
        free = free_names(source) if "check" in inferlab else set()
    except SyntaxError as error:
        return [*messages, f"not Python (line {error.lineno} of the cell): {error.msg}"]
    for module in sorted(modules):
        if module.split(".")[0] == "inferlab" and not module.startswith(LAB_PACKAGES):
            messages.append(f"imports {module}; a lab imports from {', '.join(LAB_PACKAGES)} only")
        if module.split(".")[0] in ("nbgrader", "pytest"):
            messages.append(f"imports {module}, which learners do not have")
    for name in inferlab.get("provides", []):
        if name not in bound:
            messages.append(f"provides '{name}', but the cell defines {', '.join(bound) or 'nothing'}")
    if "check" in inferlab:
        messages += _check(source, full, free)
    return messages


def _check(source: str, full: dict, free: set[str]) -> list[str]:
    """A check cell stands alone, says the same points as its metadata, and ends with its score."""
    messages = []
    if free:
        messages.append(f"check '{full['inferlab']['check']}' reads {', '.join(sorted(free))} from outside "
                        "its cell; a test cell imports and builds all it uses")
    body = ast.parse(python_of(source)).body
    calls = [node for node in ast.walk(ast.parse(python_of(source)))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Check"]
    if len(calls) != 1:
        return [*messages, f"a check cell makes one Check(...); this one makes {len(calls)}"]
    given = {keyword.arg: keyword.value for keyword in calls[0].keywords}
    stated = given.get("points") or (calls[0].args[1] if len(calls[0].args) > 1 else None)
    number = stated.value if isinstance(stated, ast.Constant) else None
    if not isinstance(number, int | float) or number != full["nbgrader"]["points"]:
        messages.append(f"Check(...) must state points={full['nbgrader']['points']}, "
                        "as the cell's first line does")
    last = body[-1] if body else None
    ends = (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
            and isinstance(last.value.func, ast.Attribute) and last.value.func.attr == "score")
    if not ends or any("score()" in line for line in region_lines(source, HIDDEN)):
        messages.append("a check cell's last line is check.score(), outside the hidden tests")
    return messages


def _wrong(wrong: list[WrongAnswer], declared: set[str], lines: dict,
           points: dict[str, float]) -> list[Finding]:
    findings = []
    for owner in sorted(declared):
        answers = [answer for answer in wrong if answer.exercise == owner]
        if len(answers) < WRONG_ANSWERS_WANTED:
            findings.append(Finding(lines.get(owner, 1),
                                    f"'{owner}' has {len(answers)} named wrong answers in "
                                                         f"{WRONG_ANSWERS}, at least "
                                                         f"{WRONG_ANSWERS_WANTED} wanted"))
        for answer in answers:
            for check, kept in answer.keeps.items():
                if kept > points.get(check, 0):
                    findings.append(Finding(lines.get(owner, 1),
                                            f"'{answer.name}' keeps {kept:g} of {check}, "
                                                                 f"which has {points.get(check, 0):g} "
                                                                 "points"))
            if answer.keeps and all(answer.keeps[check] == points.get(check) for check in answer.keeps):
                findings.append(Finding(lines.get(owner, 1),
                                        f"'{answer.name}' keeps every point: it is not wrong"))
    return findings
