"""The labelled answers and rubrics of tests/explanations, importable by the tests here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explanations"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ci"))
