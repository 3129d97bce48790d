"""The scripts that made the bundled models."""

import inferlab  # noqa: F401 - before torch: OpenMP reads how its idle threads wait once, when torch loads it
