"""Sweeps for the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from models.scenarios import scenario
from models.sweeps.axes import read_axis
from models.sweeps.plan import Sweep

MakeSweep = Callable[..., Sweep]


@pytest.fixture(scope="session")
def make_sweep() -> MakeSweep:
    """`make_sweep("basis_fit", "learning_rate=1e-3:1:3", steps=20, x_low=0.1)`"""

    def make(
        name: str,
        *axes: str,
        preset: str = "as-posted",
        steps: int = 20,
        seeds: int = 1,
        **changes: Any,
    ) -> Sweep:
        chosen = scenario(name)
        read = tuple(read_axis(chosen, axis) for axis in axes)
        return Sweep(name, chosen.config(preset, changes), read, steps, seeds)

    return make
