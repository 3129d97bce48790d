"""The learner's side of a run: an isolated process, its kernel, and the narrow channel to the grader."""
