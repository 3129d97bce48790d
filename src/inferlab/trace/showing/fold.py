"""Folds what repeats: identical steps of a loop, and identical neighbours, become one line with a count."""

import re
from dataclasses import dataclass, field

from inferlab.trace.reading.boundary import Boundary

_DIGITS = re.compile(r"\d+")


@dataclass
class Group:
    """Consecutive boundaries shown together.

    boundaries  those of the first step, or one boundary outside loops
    count       how many identical steps, or identical neighbours, there are
    steps       (first, last) for steps of a loop, else None
    others      the boundaries of the further steps or neighbours, shown when unfolded
    """

    boundaries: list[Boundary]
    count: int = 1
    steps: tuple | None = None
    others: list[Boundary] = field(default_factory=list)

    @property
    def ms(self) -> float:
        """Milliseconds of all of them together."""
        return sum(b.ms or 0.0 for b in (*self.boundaries, *self.others))


class Folder:
    """Groups siblings. Each subtree gets a number, so that comparing two steps is comparing two numbers."""

    def __init__(self) -> None:
        self._numbers: dict[tuple, int] = {}
        self._trees: dict[int, int] = {}

    def tree(self, boundary: Boundary) -> int:
        """A number; equal for boundaries whose whole subtrees have equal names, shapes and devices."""
        known = self._trees.get(id(boundary))
        if (
            known is None
            and boundary.kind == "move"
            and boundary.base != boundary.moved_name
            and not boundary.children
        ):
            # Offloading moves a component's layers one by one: those moves fold into one line.
            known = self._trees[id(boundary)] = self._numbers.setdefault(
                ("move", boundary.base), len(self._numbers)
            )
        if known is None:
            name, *rest = boundary.fold_key()
            key = (_DIGITS.sub("*", name), *rest, tuple(self.tree(child) for child in boundary.children))
            known = self._trees[id(boundary)] = self._numbers.setdefault(key, len(self._numbers))
        return known

    def groups(self, siblings: list[Boundary]) -> list[Group]:
        """The siblings in order, as groups of steps and of identical neighbours."""
        found: list[Group] = []
        index = 0
        while index < len(siblings):
            step, parent = siblings[index].step, siblings[index].parent
            inside = step is not None and (parent is None or parent.step is None)
            if not inside:
                found.append(Group([siblings[index]]))
                index += 1
                continue
            turns: list[list[Boundary]] = []
            while index < len(siblings) and siblings[index].step is not None:
                number = siblings[index].step
                if turns and (number or 0) < (turns[-1][0].step or 0):
                    break
                turn = []
                while index < len(siblings) and siblings[index].step == number:
                    turn.append(siblings[index])
                    index += 1
                turns.append(turn)
            found.extend(self._fold_turns(turns))
        return self._fold_neighbours(found)

    def _fold_turns(self, turns: list[list[Boundary]]) -> list[Group]:
        groups: list[Group] = []
        last = None
        for turn in turns:
            key = tuple(self.tree(boundary) for boundary in turn)
            if key == last:
                groups[-1].count += 1
                groups[-1].others.extend(turn)
                groups[-1].steps = (groups[-1].boundaries[0].step, turn[0].step)
            else:
                groups.append(Group(turn, 1, (turn[0].step, turn[0].step)))
                last = key
        return groups

    def _fold_neighbours(self, groups: list[Group]) -> list[Group]:
        folded: list[Group] = []
        for group in groups:
            before = folded[-1] if folded else None
            if (
                before is not None
                and group.steps is None
                and before.steps is None
                and self.tree(group.boundaries[0]) == self.tree(before.boundaries[0])
            ):
                before.count += 1
                before.others.extend(group.boundaries)
            else:
                folded.append(group)
        return folded
