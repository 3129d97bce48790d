"""Follows where every component's weights were, from the moves that a trace recorded."""

from .boundary import Boundary


def residency(boundaries: list[Boundary], at_start: dict[str, str | None]) -> list[dict]:
    """Where the weights were when each boundary began: a list of {"boundary", "name", "where"}.

    `at_start` maps components to devices; "where" is such a dict at that time. Moves of single layers
    (sequential and group offload) are boundaries of kind "move", but leave their component's place alone.
    """
    where = dict(at_start)
    found = []
    events = []
    for boundary in boundaries:
        if boundary.level <= 1 or (boundary.kind == "move" and boundary.moved_name in where):
            events.append((boundary.start_ns, 1, boundary))
        if boundary.moved:
            events.append((boundary.end_ns, 0, boundary))
    for _, begins, boundary in sorted(events, key=lambda event: event[:2]):
        move = boundary.moved
        if begins:
            found.append({"boundary": boundary.index, "name": boundary.name, "where": dict(where)})
        elif move and move["module"] in where:
            where[move["module"]] = move["to"]
    return found
