"""Brings handed-in files into `submitted/`: tells which lab a file is of, whose it is and when it came.

`collect.py` does it: `incoming.py` finds the files, `identify.py` tells what each is. Files are read and
mended in `grading/submission/`.
"""
