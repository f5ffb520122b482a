"""Settings of the whole suite."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Machines differ in speed, results must not: no deadlines, the same examples every time.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("suite")


class Shares(LoadScopeScheduling):
    """One process takes all browser tests, which mostly wait; the files of the others, which
    compute, are shared out whole, so that their fixtures are set up once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "browser" if file.startswith("tests/browser/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Shares:
    return Shares(config, log)
