"""Optimising within the finite region."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from models.errors import BadInput
from models.scenarios import scenario
from models.sweeps.optimise import Optimisation, Range, best

pytest.importorskip("optuna")

BALANCED = scenario("balanced_loss")
EPSILON = Range("epsilon", 1e-12, 1e-2, log=True)
RATE = Range("learning_rate", 1e-3, 1.0, log=True)


def optimisation(*ranges: Range, **options: Any) -> Optimisation:
    config = BALANCED.config("as-posted", {"hidden_1": 8, "hidden_2": 4})
    return Optimisation("balanced_loss", config, ranges, **options)


def test_the_best_trial_is_finite_and_learned() -> None:
    search = optimisation(EPSILON, RATE, steps=60, seeds=2, trials=40)
    trials = [trial for batch in search.run() for trial in batch]
    assert [trial.number for trial in trials] == list(range(40))
    for trial in trials:
        assert 1e-12 <= trial.settings["epsilon"] <= 1e-2  # type: ignore[operator]
        assert len(trial.runs) == 2
        assert (trial.metric is None) == any(not run.finite for run in trial.runs)
        # Whatever breaks does so where 1 − ε is 1 in float32.
        assert trial.metric is not None or trial.settings["epsilon"] <= 2**-25  # type: ignore[operator]
    found = best(trials)
    assert found is not None
    assert found.metric is not None
    assert found.metric > 0.9


def test_nothing_finite_has_no_best() -> None:
    search = optimisation(Range("learning_rate", 0.5, 1.0), steps=60, trials=4)
    assert best([trial for batch in search.run() for trial in batch]) is None


@pytest.mark.parametrize(
    ("ranges", "options", "says"),
    [
        ((), {}, "at least one knob"),
        ((Range("dtype", 0, 1),), {}, "no range"),
        ((Range("epsilon", 1e-2, 1e-12),), {}, "low end first"),
        ((EPSILON,), {"trials": 0}, "from 1 to 1000"),
    ],
)
def test_bad_searches_are_refused(
    ranges: tuple[Range, ...], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        optimisation(*ranges, **options)


def test_optuna_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(BadInput, match="pip install optuna"):
        optimisation(EPSILON)
