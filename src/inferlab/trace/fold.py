"""Folds what repeats: identical steps of a loop, and identical neighbours, become one line with a count."""

import re
from dataclasses import dataclass, field

_DIGITS = re.compile(r"\d+")


@dataclass
class Group:
    """Consecutive boundaries shown together.

    `boundaries` are those of the first turn; `count` is how many identical turns there are; `steps` is (first, last)
    for turns of a loop, else None; `others` are the boundaries of the further turns, shown when unfolded.
    """

    boundaries: list
    count: int = 1
    steps: tuple | None = None
    others: list = field(default_factory=list)

    @property
    def ms(self) -> float:
        return sum(b.ms or 0.0 for b in (*self.boundaries, *self.others))


class Folder:
    """Groups siblings; signatures of whole subtrees are interned, so comparing two steps is comparing two numbers."""

    def __init__(self):
        self._numbers: dict = {}
        self._trees: dict = {}

    def tree(self, boundary) -> int:
        """A number equal for two boundaries whose whole subtrees have equal names, shapes, dtypes and devices."""
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
            name, *rest = boundary.signature()
            key = (_DIGITS.sub("*", name), *rest, tuple(self.tree(child) for child in boundary.children))
            known = self._trees[id(boundary)] = self._numbers.setdefault(key, len(self._numbers))
        return known

    def groups(self, siblings: list) -> list:
        """The siblings in order, as groups of steps and of identical neighbours."""
        found = []
        index = 0
        while index < len(siblings):
            step, parent = siblings[index].step, siblings[index].parent
            inside = step is not None and (parent is None or parent.step is None)
            if not inside:
                found.append(Group([siblings[index]]))
                index += 1
                continue
            turns = []
            while index < len(siblings) and siblings[index].step is not None:
                number = siblings[index].step
                if turns and number < turns[-1][0].step:
                    break
                turn = []
                while index < len(siblings) and siblings[index].step == number:
                    turn.append(siblings[index])
                    index += 1
                turns.append(turn)
            found.extend(self._fold_turns(turns))
        return self._fold_neighbours(found)

    def _fold_turns(self, turns: list) -> list:
        groups = []
        last = None
        for turn in turns:
            key = tuple(self.tree(boundary) for boundary in turn)
            if key == last:
                groups[-1].count += 1
                groups[-1].others.extend(turn)
                groups[-1].steps = (groups[-1].steps[0], turn[0].step)
            else:
                groups.append(Group(turn, 1, (turn[0].step, turn[0].step)))
                last = key
        return groups

    def _fold_neighbours(self, groups: list) -> list:
        folded = []
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
