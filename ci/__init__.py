"""Executes every notebook, proves every grade, measures what the course costs."""

import inferlab  # noqa: F401 - before torch: OpenMP reads how its idle threads wait once, when torch loads it
