"""Reads the rubrics of a lab out of its hidden tests, without running anything else of the lab."""

import ast
import pathlib

from inferlab.lab.explain import Amounts, Rubric, Slot, Trend, terms

ROOT = pathlib.Path(__file__).resolve().parents[2]
_KINDS = {"Rubric": Rubric, "Slot": Slot, "Trend": Trend, "Amounts": Amounts, "terms": terms}


def lab_names() -> list[str]:
    """The labs whose text has a rubric."""
    return sorted(p.parent.name for p in (ROOT / "notebooks").glob("*/*.py") if p.stem == p.parent.name and "Rubric(" in p.read_text(encoding="utf-8"))


def _cells(lab: str) -> list[str]:
    text = (ROOT / "notebooks" / lab / f"{lab}.py").read_text(encoding="utf-8")
    return ("\n" + text).split("\n# %%")


def rubrics(lab: str) -> dict[str, list[Rubric]]:
    """Explanation name -> its rubrics, in the order of the lab's check cells.

    In each check cell the assignments of literals and of rubrics are evaluated, nothing else; raises ValueError
    where a cell that names `Rubric` gives none.
    """
    out: dict[str, list[Rubric]] = {}
    for cell in _cells(lab):
        head, _, body = cell.partition("\n")
        if "Rubric(" not in body or ' of="' not in head:
            continue
        name = head.split(' of="')[1].split('"')[0]
        names: dict[str, object] = dict(_KINDS)
        found = 0
        for node in ast.parse(body).body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                used = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
                if used <= set(names):
                    value = eval(compile(ast.Expression(node.value), lab, "eval"), {"__builtins__": {}}, names)
                    names[node.targets[0].id] = value
                    if isinstance(value, Rubric):
                        out.setdefault(name, []).append(value)
                        found += 1
        if not found:
            raise ValueError(f"{lab}: a check of {name!r} names Rubric, but none can be read from its plain assignments")
    return out


def joined(lab: str, name: str) -> list[tuple[str, Rubric]]:
    """(slot, rubric) for every slot of one explanation."""
    return [(slot, rubric) for rubric in rubrics(lab)[name] for slot in rubric.slots]
