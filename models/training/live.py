"""Live runs: trainers that a server's worker threads advance and any thread may steer.

All live runs share one pool of as many workers as the machine has cores. A run hands its worker
back after each burst (about 75 ms) and queues again, so that no run can starve another.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..diagnosis import Diagnosis
from ..scenarios.contract import Array, Dataset, Outcome, Scenario
from ..scenarios.knobs import Config
from .collector import held_off, settle
from .health import FIELDS, nonfinite
from .history import HistoryView
from .program import Gradients
from .trainer import Snapshot, Trainer

BURST_SECONDS = 0.075
OUTCOME_SECONDS = 0.5
OUTCOME_SHARE = 0.1  # of a worker's time, at most, goes into showing what was learned

Status = Literal["building", "paused", "running", "diagnosing", "halted", "failed"]

pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="nanatomy-worker")


@dataclass(frozen=True)
class Finding:
    """What a replay of a bad step brought to light."""

    snapshot: Snapshot
    diagnosis: Diagnosis
    through_time: dict[str, Array]  # see `Program.through_time`; empty without a recurrence


@dataclass(frozen=True)
class RunView:
    """What a page shows of a run at one moment; arrays are never written to again."""

    status: Status
    message: str  # why it halted or failed
    step: int  # steps taken
    loss: float | None  # of the latest step
    steps_per_second: float
    finite: int  # parameters whose latest gradient is finite, after clipping
    history: HistoryView
    raw: Array  # float64 [parameters, FIELDS] of the latest step
    applied: Array
    outcome: Outcome | None
    first_bad_step: int | None
    bad_steps: int
    rescaled_steps: int
    loss_scale: float | None
    snapshots: tuple[Snapshot, ...]
    findings: dict[int, Finding]  # bad step → why it is bad, for those that were looked into


class LiveRun:
    """One run; every method may be called from any thread and returns at once."""

    def __init__(
        self,
        scenario: Scenario,
        config: Config,
        dataset: Dataset,
        content: bytes | None = None,
        because: str = "",
    ) -> None:
        self.scenario = scenario
        self.dataset = dataset
        self.content = content  # of the file the data set came from; None: the scenario's own
        self.because = because  # why it took the place of another run, in a sentence
        self._config = dict(config)
        self._lock = threading.Lock()
        self._changes: Config = {}
        self._steps_wanted = 0.0  # inf while running
        self._queued = True
        self._closed = False
        self._reset = False
        self._error = ""
        self._trainer: Trainer | None = None
        self._outcome: Outcome | None = None
        self._inspected: tuple[Snapshot, Gradients] | None = None
        self._outcome_due = 0.0
        self._findings: dict[int, Finding] = {}
        self._questions: list[Snapshot] = []
        self._burst_steps = 1
        self._speed = 0.0
        self._ready = threading.Event()
        self._found = threading.Condition()
        pool.submit(self._guarded, self._build)

    # Steering.

    @property
    def config(self) -> Config:
        """The knobs as they will stand at the next step."""
        with self._lock:
            return self._config | self._changes

    @property
    def error(self) -> str:
        """What went wrong in a worker, or nothing."""
        return self._error

    @property
    def running(self) -> bool:
        return self._steps_wanted > 0

    def start(self) -> None:
        self._want(np.inf)

    def pause(self) -> None:
        self._want(0)

    def take_step(self) -> None:
        """One step, after which the run is paused."""
        self._want(1)

    def change(self, changes: Config) -> None:
        """Move knobs that are not structural; they act on the very next step that is computed."""
        with self._lock:
            self._changes |= changes
        self._queue()

    def look_into(self, snapshot: Snapshot) -> None:
        """Have a bad step diagnosed; the finding appears in the views that follow."""
        with self._lock:
            if not any(asked is snapshot for asked in self._questions):
                self._questions.append(snapshot)
        self._queue()

    def examine(self) -> None:
        """Have the step that comes next diagnosed, though nothing is known to be wrong with it."""
        if self._trainer is not None:
            self.look_into(self._trainer.snapshot())

    def reset(self) -> None:
        """Go back to step 0, paused, with the knobs as they stand."""
        with self._lock:
            self._reset, self._steps_wanted, self.because = True, 0, ""
        self._queue()

    def close(self) -> None:
        """End the run and drop what it holds; a burst under way is finished and forgotten."""
        with self._lock:
            self._closed, self._steps_wanted = True, 0
            self._trainer = self._outcome = self._inspected = None
            self._findings, self._questions = {}, []

    def wait_until_built(self, timeout: float | None = None) -> bool:
        """Block until the first step could be taken (or building failed)."""
        return self._ready.wait(timeout)

    @property
    def looking(self) -> bool:
        """Whether a step that was asked for is yet to be diagnosed."""
        return bool(self._questions)

    def wait_for_finding(self, known: Collection[int], timeout: float) -> bool:
        """Block until other bad steps than those known were diagnosed; False if none was."""
        with self._found:
            return self._found.wait_for(lambda: self._findings.keys() != set(known), timeout)

    # Looking.

    def view(self) -> RunView | None:
        """The run as it stands, or None while it is being built (or after it was closed)."""
        trainer = self._trainer
        if trainer is None:
            return None
        rows = trainer.last_rows
        empty = np.zeros((len(trainer.program.names), len(FIELDS)))
        applied = rows.applied[0] if rows else empty
        return RunView(
            status=self.status,
            message=self._message(trainer),
            step=trainer.step,
            loss=float(rows.loss[0]) if rows else None,
            steps_per_second=self._speed,
            finite=int(np.sum(nonfinite(applied) == 0)),
            history=trainer.history.view(),
            raw=rows.raw[0] if rows else empty,
            applied=applied,
            outcome=self._outcome,
            first_bad_step=trainer.first_bad_step,
            bad_steps=trainer.bad_steps,
            rescaled_steps=trainer.rescaled_steps,
            loss_scale=trainer.program.loss_scale(trainer.state),
            snapshots=tuple(trainer.snapshots),
            findings=dict(self._findings),
        )

    @property
    def status(self) -> Status:
        if self._error:
            return "failed"
        if self._trainer is None:
            return "building"
        if self._steps_wanted > 0:
            return "running"
        if self._queued:  # a paused run finishes its burst first
            return "diagnosing" if self._trainer.halted else "running"
        return "halted" if self._trainer.halted else "paused"

    def gradients(self, snapshot: Snapshot | None = None) -> Gradients | None:
        """Gradients in full at a snapshot, or at the step that comes next; computed by the caller's
        thread, while training goes on. Those of the last snapshot asked for are kept."""
        trainer = self._trainer
        if trainer is None:
            return None
        if snapshot is None:
            return trainer.gradients()
        kept, gradients = self._inspected or (None, None)
        if kept is not snapshot or gradients is None:
            gradients = trainer.gradients(snapshot)
            self._inspected = (snapshot, gradients)
        return gradients

    # What the workers do.

    def _want(self, steps: float) -> None:
        with self._lock:
            self._steps_wanted = 0 if self._closed else steps
        self._queue()

    def _queue(self) -> None:
        with self._lock:
            idle = not (self._changes or self._reset or self._questions or self._steps_wanted > 0)
            if self._queued or self._closed or idle:
                return
            self._queued = True
        pool.submit(self._guarded, self._turn)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            with self._lock:
                self._error = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                self._steps_wanted, self._questions = 0, []
            traceback.print_exc()
            self._ready.set()
        with self._lock:
            self._queued = False
        self._queue()

    def _build(self) -> None:
        with held_off():
            trainer = Trainer(self.scenario, self._config, self.dataset)
            new = trainer.compile()
        with self._lock:
            if not self._closed:
                self._trainer = trainer
        self._ready.set()
        if new:
            settle()
        if not self.running:
            self._look(trainer)

    def _turn(self) -> None:
        with self._lock:
            self._config |= self._changes
            changes, self._changes = self._changes, {}
            reset, self._reset = self._reset, False
            questions = list(self._questions)
            trainer = self._trainer
            steps = int(min(self._steps_wanted, self._burst_steps))
        if trainer is None:
            return
        if reset:
            trainer = self._trainer = Trainer(self.scenario, self._config, self.dataset)
            self._findings = {}
        trainer.change(changes)
        if steps > 0:
            self._burst(trainer, steps)
            if trainer.snapshots and (trainer.halted or not self._findings):
                self._diagnose(trainer, trainer.snapshots[-1])
        for snapshot in questions:
            self._diagnose(trainer, snapshot)
            with self._lock:
                self._questions = [asked for asked in self._questions if asked is not snapshot]
        if not self.running or time.monotonic() >= self._outcome_due:
            self._look(trainer)

    def _diagnose(self, trainer: Trainer, snapshot: Snapshot) -> None:
        kept = {s.step for s in trainer.snapshots}
        found = {step: f for step, f in self._findings.items() if step in kept}
        with held_off():
            diagnosis = trainer.diagnose(snapshot)
        with self._found:
            self._findings = found | {snapshot.step: Finding(snapshot, diagnosis, {})}
            self._found.notify_all()
        if self.scenario.nudges is not None:  # told later: its graph may have to be compiled
            finding = Finding(snapshot, diagnosis, trainer.through_time(snapshot))
            self._findings = found | {snapshot.step: finding}

    def _burst(self, trainer: Trainer, steps: int) -> None:
        began = time.perf_counter()
        taken = len(trainer.advance(steps).step)
        seconds = time.perf_counter() - began
        if taken == steps:  # else a bad step ended it, and its time says little
            self._speed = _blend(self._speed, taken / seconds)
            fitting = self._burst_steps * BURST_SECONDS / seconds
            self._burst_steps = int(np.clip(fitting, 1, 2 * self._burst_steps))
        with self._lock:
            self._steps_wanted = 0 if trainer.halted else max(0, self._steps_wanted - taken)

    def _look(self, trainer: Trainer) -> None:
        """Bring the outcome up to date, and let training have its share before the next look."""
        began = time.monotonic()
        self._outcome = trainer.outcome()
        now = time.monotonic()
        self._outcome_due = now + max(OUTCOME_SECONDS, (now - began) / OUTCOME_SHARE)

    def _message(self, trainer: Trainer) -> str:
        if self._error:
            return self._error
        if trainer.halted and trainer.snapshots:
            return trainer.snapshots[-1].message
        return ""


def _blend(old: float, new: float) -> float:
    """A speed that follows within a few bursts but does not flicker."""
    return new if old == 0 else 0.8 * old + 0.2 * new
