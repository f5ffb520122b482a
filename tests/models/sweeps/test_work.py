"""A map's work behind a page: leases, searches, and going on after a stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from models.sweeps.boundary_curve import BoundaryCurve, Search, spread
from models.sweeps.engines import LocalEngine
from models.sweeps.optimise import Optimisation, Range
from models.sweeps.optimising import OptimisationRun
from models.sweeps.plan import Sweep
from models.sweeps.running import SweepRun
from models.sweeps.work import MapWork
from models.training.registry import Registry

MakeSweep = Callable[..., Sweep]
AXES = ("epsilon=1e-12:1e-2:log:6", "learning_rate=1e-1:1:log:6")


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_started_while_it_is_about_to_stop_it_goes_on(make_sweep: MakeSweep) -> None:
    run = SweepRun(make_sweep("balanced_loss", *AXES, steps=300))
    run.start()
    until(lambda: bool(run.view().survived))
    run.stop()
    assert not run.running
    run.start()
    assert run.running
    until(lambda: run.status == "done")
    run.close()
    assert len(run.view().results) == 36


def test_another_engine_takes_over_what_one_left(make_sweep: MakeSweep) -> None:
    class Gone(LocalEngine):
        def problem(self) -> str:
            return "The scheduler does not answer any more."

    run = SweepRun(make_sweep("balanced_loss", *AXES, steps=20), Gone())
    run.start()
    assert run.wait(30)
    assert run.status == "failed"
    assert run.view().message == "The scheduler does not answer any more."
    assert run.view().failed == 36
    run.start(LocalEngine())
    assert run.wait(60)
    run.close()
    assert (run.status, run.view().failed) == ("done", 0)


def test_a_lost_lease_stops_the_sweep_and_its_return_takes_it_up(make_sweep: MakeSweep) -> None:
    registry: Registry[MapWork] = Registry(grace_seconds=60)
    assert registry.acquire("tab/map", "first")
    work = MapWork(SweepRun(make_sweep("balanced_loss", *AXES, steps=50_000)))
    registry.put("tab/map", work)
    work.start()
    until(lambda: bool(work.run.view().survived))
    registry.release("tab/map", "first")
    assert work.run.wait(30)
    assert work.run.status == "stopped"
    assert registry.acquire("tab/map", "second")
    assert work.running
    registry.close()
    assert work.run.wait(30)
    assert len(registry) == 0
    assert not work.active


def search(make_sweep: MakeSweep, **parts: Any) -> Search:
    config = make_sweep("balanced_loss", *AXES, learning_rate=0.5).config
    return Search("balanced_loss", config, "epsilon", 1e-12, 1e-2, steps=60, seeds=1, **parts)


def test_every_point_of_a_curve_is_measured(make_sweep: MakeSweep) -> None:
    curve = BoundaryCurve(search(make_sweep, other="learning_rate", values=(1e-6, 1.0)))
    assert curve.wait(120)
    assert (curve.status, curve.progress[0]) == ("done", 1.0)
    found = {p.settings["learning_rate"]: p.found for p in curve.points}
    assert set(found) == {0.5, 1e-6, 1.0}
    for rate in (0.5, 1.0):  # 1 − ε rounds to 1 up to 2^-25, whatever the rate
        assert found[rate].boundary == pytest.approx(2**-25, rel=2e-3)  # type: ignore[union-attr]
    assert found[1e-6].finite_side == "everywhere", "nothing is learned in 60 steps"  # type: ignore[union-attr]


def test_a_search_is_stopped_and_what_it_may_not_do_is_a_sentence(make_sweep: MakeSweep) -> None:
    curve = BoundaryCurve(search(make_sweep, other="learning_rate", values=(0.1, 1.0)))
    curve.stop()
    assert curve.wait(60)
    assert curve.status == "stopped"
    asked = search(make_sweep)
    backwards = BoundaryCurve(Search(**{**asked.__dict__, "low": 1.0, "high": 0.1}))
    assert backwards.wait(60)
    assert backwards.status == "failed"
    assert "give the low end first" in backwards.message


def test_trials_come_in_batches_and_the_best_is_finite(make_sweep: MakeSweep) -> None:
    pytest.importorskip("optuna")
    config = make_sweep("balanced_loss", *AXES).config
    ranges = (Range("epsilon", 1e-12, 1e-2, log=True), Range("learning_rate", 0.1, 1.0, log=True))
    run = OptimisationRun(Optimisation("balanced_loss", config, ranges, steps=60, trials=20))
    assert run.wait(120)
    assert (run.status, run.progress[1]) == ("done", "20 of 20 trials")
    assert run.best is not None
    metrics = [trial.metric for trial in run.trials if trial.metric is not None]
    assert run.best.metric == max(metrics)


@pytest.mark.parametrize(
    ("count", "most", "places"),
    [(3, 9, (0, 1, 2)), (32, 3, (0, 16, 31)), (1, 9, (0,)), (9, 9, tuple(range(9)))],
)
def test_values_are_spread_from_the_first_to_the_last(
    count: int, most: int, places: tuple[int, ...]
) -> None:
    assert spread(tuple(range(count)), most) == places
