"""The rule behind a verdict, at its edges."""

from __future__ import annotations

import math
from typing import Any

import pytest

from models.remedies.fidelity import Fidelity
from models.remedies.verdict import Numbers, judge


def verdict(bad: int | None, loss: float = 1.0, **rest: Any) -> str:
    settings = {"untouched_bad_step": 100, "untouched_loss": 2.0, "fidelity": Fidelity(1e-7, "W")}
    return judge(Numbers(bad, loss, **(settings | rest)))


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (89, "makes it worse"),
        (90, "does nothing"),
        (100, "does nothing"),
        (110, "does nothing"),
        (111, "only delays"),
        (None, "mends"),
    ],
)
def test_a_tenth_sooner_or_later_is_no_difference(bad: int | None, expected: str) -> None:
    assert verdict(bad) == expected


def test_after_a_break_at_once_any_later_step_is_a_delay() -> None:
    assert verdict(0, untouched_bad_step=0) == "does nothing"
    assert verdict(1, untouched_bad_step=0) == "only delays"


def test_losing_the_loss_as_well_is_worse() -> None:
    assert verdict(100, math.nan) == "makes it worse"
    assert verdict(100, math.nan, untouched_loss=math.nan) == "does nothing"


@pytest.mark.parametrize(
    ("distance", "expected"),
    [(0.1, "mends"), (0.11, "mends but distorts the gradient"), (None, "mends")],
)
def test_a_gradient_without_one_right_digit_is_distorted(distance: Any, expected: str) -> None:
    assert verdict(None, fidelity=Fidelity(distance, "W")) == expected


def test_a_vanished_gradient_hides() -> None:
    hidden = Fidelity(1.0, "W", hidden=("W",))
    assert verdict(None, fidelity=hidden) == "hides it (zero gradient)"


def test_going_round_is_mending_only_beyond_the_point_that_broke() -> None:
    assert verdict(None, 1.9, survives=False) == "mends"
    assert verdict(None, 2.1, survives=False) == "only delays"
    assert verdict(None, 2.1, survives=True) == "mends"


@pytest.mark.parametrize(("bad", "expected"), [(None, "does nothing"), (7, "makes it worse")])
def test_without_a_break_there_is_nothing_to_mend(bad: int | None, expected: str) -> None:
    assert verdict(bad, untouched_bad_step=None) == expected
