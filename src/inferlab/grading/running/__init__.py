"""Runs one submission and keeps what that gave.

`host.py` pairs a kernel in the sandbox with a grader's process (`grader.py`), and keeps the result. That
process runs the job and asks the kernel through `remote.py`. `prove_job.py` is run instead when a lab's own
answers are proven.
"""
