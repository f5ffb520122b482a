"""Live runs and their registry: life cycles with real workers."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from models.scenarios import scenario
from models.scenarios.knobs import Config
from models.training.live import LiveRun, RunView
from models.training.registry import Registry
from models.training.trainer import Trainer


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def new_run(preset: str = "mended", **changes: object) -> LiveRun:
    balanced = scenario("balanced_loss")
    config: Config = balanced.config(preset, changes)  # type: ignore[arg-type]
    return LiveRun(balanced, config, balanced.load(config, None))


def view_of(run: LiveRun) -> RunView:
    view = run.view()
    assert view is not None
    return view


@pytest.fixture
def run() -> Iterator[LiveRun]:
    run = new_run()
    assert run.wait_until_built(60)
    yield run
    run.close()


def test_a_live_run_halts_where_a_headless_one_does_with_the_same_losses() -> None:
    run = new_run("as-posted", learning_rate=0.5)
    run.start()
    until(lambda: run.status == "halted")
    headless = Trainer(run.scenario, run.config, run.dataset)
    while not headless.halted:
        headless.advance(7)
    live = view_of(run)
    assert live.first_bad_step == headless.first_bad_step
    np.testing.assert_array_equal(live.history.loss, headless.history.view().loss)
    np.testing.assert_array_equal(live.history.raw.norm, headless.history.view().raw.norm)


def test_one_step_is_one_step_and_pause_stops(run: LiveRun) -> None:
    run.take_step()
    until(lambda: view_of(run).step == 1 and run.status == "paused")
    run.start()
    until(lambda: view_of(run).step > 50)
    run.pause()
    until(lambda: run.status == "paused")
    stopped = view_of(run).step
    time.sleep(0.3)
    assert view_of(run).step == stopped


def test_a_knob_is_marked_at_the_step_from_which_it_acts(run: LiveRun) -> None:
    run.take_step()
    until(lambda: run.status == "paused" and view_of(run).step == 1)
    run.change({"learning_rate": 0.5})
    assert run.config["learning_rate"] == 0.5
    until(lambda: bool(view_of(run).history.marks))
    assert view_of(run).history.marks == ((1, "Learning rate: 0.5"),)
    run.take_step()
    until(lambda: view_of(run).step == 2)
    ratio = view_of(run).history.update_ratio
    assert np.nanmin(ratio[:, 1] / ratio[:, 0]) > 5, "ten times the rate, about ten times the step"


def test_reset_goes_back_to_the_start(run: LiveRun) -> None:
    run.start()
    until(lambda: view_of(run).step > 20)
    run.reset()
    until(lambda: run.status == "paused" and view_of(run).step == 0)


def test_a_failure_inside_a_worker_is_told_and_frees_the_worker() -> None:
    run = new_run()
    run.wait_until_built(60)
    run._trainer.advance = lambda steps: 1 / 0  # type: ignore[union-attr, assignment, method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("traceback.print_exc", lambda: None)
        run.start()
        until(lambda: run.status == "failed")
    assert "ZeroDivisionError" in view_of(run).message


def test_many_runs_share_the_workers_fairly(monkeypatch: pytest.MonkeyPatch) -> None:
    bursts: Counter[Trainer] = Counter()
    advance = Trainer.advance

    def counted(self: Trainer, steps: int) -> Any:
        bursts[self] += 1
        return advance(self, steps)

    monkeypatch.setattr(Trainer, "advance", counted)
    runs = [new_run(seed=seed) for seed in range(5)]
    for run in runs:
        run.wait_until_built(60)
        run.start()
    until(lambda: len(bursts) == 5)
    before = Counter(bursts)
    until(lambda: min((bursts - before).values(), default=0) >= 8 and len(bursts - before) == 5)
    turns = (bursts - before).values()
    for run in runs:
        run.close()
    assert max(turns) <= min(turns) + 2, turns


def test_a_lost_lease_pauses_and_a_returning_session_goes_on(run: LiveRun) -> None:
    registry = Registry()
    assert registry.acquire("tab", "first")
    registry.put("tab", run)
    run.start()
    until(lambda: view_of(run).step > 10)
    registry.release("tab", "first")
    until(lambda: run.status == "paused")
    assert registry.acquire("tab", "second")
    assert registry.run("tab") is run
    step = view_of(run).step
    until(lambda: view_of(run).step > step)
    registry.close()


def test_a_run_that_was_paused_stays_paused_for_the_session_that_returns(run: LiveRun) -> None:
    registry = Registry()
    registry.acquire("tab", "first")
    registry.put("tab", run)
    registry.release("tab", "first")
    registry.acquire("tab", "second")
    until(lambda: run.status == "paused")
    assert not run.running
    registry.close()


def test_nobody_takes_what_somebody_holds(run: LiveRun) -> None:
    registry = Registry()
    registry.acquire("tab", "first")
    assert not registry.acquire("tab", "second")
    registry.release("tab", "second")  # not theirs to give back
    assert not registry.acquire("tab", "second")
    registry.close()


def test_a_hundred_ends_leave_nothing_behind() -> None:
    registry = Registry(grace_seconds=0.05)
    kept: list[weakref.ref[LiveRun]] = []
    threads = threading.active_count()
    for i in range(100):
        run = new_run(seed=i)
        kept.append(weakref.ref(run))
        registry.acquire(f"tab{i}", "session")
        registry.put(f"tab{i}", run)
        run.start()
        registry.release(f"tab{i}", "session")
    del run
    until(lambda: len(registry) == 0)

    def gone() -> bool:
        gc.collect()
        return not any(ref() for ref in kept)

    until(gone)
    until(lambda: threading.active_count() <= threads + 2)  # the pool's workers may be new
