from pathlib import Path

#: A course of one small lab.
FIXTURE = Path(__file__).parent / "fixture"
LAB = "lab90-fixture"
