"""Boundaries against what floating-point arithmetic says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.errors import BadInput
from models.scenarios import scenario
from models.sweeps.boundary import NEARNESS, find_boundary
from models.training.program import draw_batch

BALANCED = scenario("balanced_loss")
FAST: dict[str, Any] = {"learning_rate": 1.0, "hidden_1": 8, "hidden_2": 4}


@pytest.mark.parametrize(
    ("dtype", "theory", "low", "steps"),
    [
        # Half the spacing below 1: a tie, which goes to 1 because 1 is even.
        ("float32", 2.0**-25, None, 60),
        ("float64", 2.0**-54, 1e-20, 400),
    ],
)
def test_epsilon_of_balanced_loss(dtype: str, theory: float, low: float | None, steps: int) -> None:
    config = BALANCED.config("as-posted", FAST | {"dtype": dtype})
    found = find_boundary("balanced_loss", config, "epsilon", low=low, steps=steps, seeds=2)
    assert found.finite_side == "above"
    assert found.mechanism == "log-of-zero"
    breaks, holds = found.bracket
    assert found.boundary == holds
    assert breaks <= theory <= holds
    assert holds / breaks <= 1 + NEARNESS
    assert all(len(bad) == 2 for bad in found.tried.values())


def test_a_knob_without_effect_has_no_boundary() -> None:
    config = BALANCED.config("mended", FAST)
    found = find_boundary("balanced_loss", config, "epsilon", steps=5)
    assert (found.finite_side, found.boundary) == ("everywhere", None)
    config = BALANCED.config("as-posted", FAST | {"absent_class": "positive"})
    found = find_boundary("balanced_loss", config, "epsilon", steps=5)
    assert (found.finite_side, found.boundary) == ("nowhere", None)
    assert found.mechanism == "divide-by-zero"


def test_a_whole_number_knob_ends_at_neighbours() -> None:
    """A batch without one class divides by 0: which sizes draw one, the batches themselves tell."""
    config = BALANCED.config("as-posted", FAST | {"epsilon": 1e-4})
    labels = {"y": BALANCED.load(config, None).train["y"]}

    def holds(size: int) -> bool:
        batches = [draw_batch(labels, np.int64(step), size, np.int64(0)) for step in range(3)]
        return all(len(np.unique(batch["y"])) == 2 for batch in batches)

    finite = [size for size in range(1, 7) if holds(size)]
    assert finite == [3, 4, 5], "the test is written for these"
    found = find_boundary("balanced_loss", config, "batch_size", low=1, high=5, steps=3)
    assert (found.finite_side, found.boundary, found.bracket) == ("above", 3, (2, 3))
    with pytest.raises(BadInput, match="breaks at both ends, 1 and 6, but not at 3"):
        find_boundary("balanced_loss", config, "batch_size", low=1, high=6, steps=3)


def test_a_linear_knob() -> None:
    """basis_fit breaks at the first step exactly where the samples reach 0."""
    config = scenario("basis_fit").config("as-posted", {"points": 8, "functions": 2})
    found = find_boundary("basis_fit", config, "x_low", low=-0.5, high=0.5, steps=1)
    assert found.finite_side == "above"
    assert found.bracket[0] <= 0 < found.bracket[1] <= 1e-3
    assert found.mechanism in {"power-of-zero", "power-of-negative"}


@pytest.mark.parametrize(
    ("knob", "options", "says"),
    [
        ("dtype", {}, "no boundary"),
        ("seed", {}, "no boundary"),
        ("epsilon", {"low": 1e-3, "high": 1e-5}, "low end first"),
        ("epsilon", {"low": 0.0}, "above 0"),
        ("epsilon", {"seeds": 9}, "from 1 to 8"),
    ],
)
def test_what_has_no_boundary_is_refused(knob: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        find_boundary("balanced_loss", BALANCED.config("as-posted"), knob, **options)
