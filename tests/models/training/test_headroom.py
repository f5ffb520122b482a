"""Headroom: distance to overflow, and a forecast only where there is a steady rise."""

from __future__ import annotations

import numpy as np
import pytest

from models.training.headroom import headroom
from models.training.health import FIELDS
from models.training.history import History, HistoryView
from models.training.program import Rows


def view_of(largest: np.ndarray) -> HistoryView:
    """History of two parameters; the second's largest gradient at each step is given."""
    n = len(largest)
    health = np.zeros((n, 2, len(FIELDS)))
    health[:, 0, 5] = 1e-3
    health[:, 1, 5] = largest
    history = History(("small", "large"), np.array([4, 4]))
    steps = np.arange(n)
    history.add(Rows(steps, np.ones(n), np.zeros(n, int), health, health, np.full((n, 2), np.nan)))
    return history.view()


def test_headroom_is_counted_in_factors_of_ten_from_the_largest_gradient() -> None:
    room = headroom(view_of(np.full(30, 1e8)), "float32")
    assert room is not None
    assert room.parameter == "large"
    assert room.factors == pytest.approx(np.log10(3.4028235e38) - 8, abs=1e-6)
    assert headroom(view_of(np.full(30, 1.0)), "float16").factors == pytest.approx(4.816, abs=1e-3)  # type: ignore[union-attr]


def test_a_steady_rise_is_forecast_to_its_overflow() -> None:
    # 1e5 at step 49, tenfold every ten steps: float16 ends at 65504, float32 333.3 steps later.
    room = headroom(view_of(10 ** (np.arange(50) / 10 + 0.1)), "float32")
    assert room is not None
    assert room.per_step == pytest.approx(0.1, rel=1e-6)
    assert room.steps_left == pytest.approx((38.532 - 5.0) / 0.1, abs=1)


@pytest.mark.parametrize(
    "largest",
    [
        np.full(60, 1e3),
        10 ** np.linspace(5, 1, 60),
        10 ** np.random.default_rng(0).normal(0, 2, 60),
        10 ** np.linspace(0, 3, 8),
    ],
    ids=["level", "falling", "noise", "too few"],
)
def test_without_a_trend_there_is_no_forecast(largest: np.ndarray) -> None:
    room = headroom(view_of(largest), "float32")
    assert room is not None
    assert room.per_step is None
    assert room.steps_left is None


def test_there_is_none_before_the_first_step_or_of_zero_gradients() -> None:
    assert headroom(view_of(np.zeros(0)), "float32") is None
    view = view_of(np.zeros(5))
    view.raw.max_abs[:] = 0
    assert headroom(view, "float32") is None
