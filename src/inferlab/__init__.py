"""InferLab: labs that trace real diffusion pipelines and language models, and grade what learners build."""

import os
import sys

__version__ = "0.2.0"

# OpenMP's idle threads spin by default. On a machine that does other things too, they take the cores from the
# one thread that works, and four steps of a small pipeline take minutes. OpenMP reads the variable once, when
# torch loads it.
TORCH_SPINS = "torch" in sys.modules and "OMP_WAIT_POLICY" not in os.environ
"""Whether torch was imported before `inferlab`: its idle threads then spin, and `start` says what to do."""
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
