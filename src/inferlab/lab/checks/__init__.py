"""Checks of exercises: they call the learner's functions, compare values, and name mistakes."""
