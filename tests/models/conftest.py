"""Runs for the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.scenarios import scenario
from models.training.computing import set_up_tensorflow
from models.training.program import Rows
from models.training.trainer import Trainer

MakeTrainer = Callable[..., Trainer]


@pytest.fixture(scope="session", autouse=True)
def as_in_the_application() -> None:
    set_up_tensorflow()


@pytest.fixture(scope="session")
def make_trainer() -> MakeTrainer:
    """`make_trainer("seq2seq", "mended", seed=3, hidden=8)`"""

    def make(name: str, preset: str = "as-posted", **changes: Any) -> Trainer:
        chosen = scenario(name)
        config = chosen.config(preset, changes)
        return Trainer(chosen, config, chosen.load(config, None))

    return make


@pytest.fixture(scope="session")
def train() -> Callable[[Trainer, int], Rows]:
    """`train(trainer, steps)` in bursts until it halts, and everything measured on the way."""

    def train(trainer: Trainer, steps: int) -> Rows:
        parts, left = [], steps
        while left and not trainer.halted:
            parts.append(trainer.advance(min(left, 500)))
            left -= len(parts[-1].step)
        return Rows.concatenate(parts)

    return train


@pytest.fixture(scope="session")
def same_bits() -> Callable[[Any, Any], bool]:
    """Whether two nested structures of tensors and arrays hold the same bits (NaN included)."""

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(map(same, a, b))
        x, y = np.asarray(a), np.asarray(b)
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()

    return same
