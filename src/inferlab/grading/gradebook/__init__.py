"""Grades a lab's submissions into nbgrader's gradebook.

`batch.py` is what `inferlab grade` runs. `record.py` writes the marks and penalties, with what a person
decided (`decisions.py`). `review.py` lists what waits for a person, `lateness.py` counts extensions and free
days, and `regrade.py` grades again. `nbgrader_autograde.py` is stock nbgrader's way in.
"""
