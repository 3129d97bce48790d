"""The tests of InferLab; README.md says what lies where."""

from pathlib import Path

#: The repository.
ROOT = Path(__file__).resolve().parents[1]
