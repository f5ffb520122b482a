"""Settings of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Machines differ in speed, results must not: no deadlines, the same examples every time.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("suite")

BROWSER = Path(__file__).parent / "browser"


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process takes all browser tests, which mostly wait; the files of the others, which
    compute, are shared out as a whole, so that their fixtures are set up once."""
    for item in items:
        group = "browser" if item.path.is_relative_to(BROWSER) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
