"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Machines differ in speed, results must not: no deadlines, the same examples every time.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("suite")
