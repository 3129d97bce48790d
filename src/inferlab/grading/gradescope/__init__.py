"""Grades on Gradescope: `package.py` makes the zip that is uploaded there, and `run.py` grades one submission
inside Gradescope's container, as `run_autograder` starts it.

The form of both is https://gradescope-autograders.readthedocs.io/en/latest/specs/. It was not tried there.
"""
