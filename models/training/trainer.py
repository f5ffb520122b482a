"""Trainer: one run of one scenario, advanced burst by burst.

The same class serves scripts and live runs, so that both give the same numbers. It is used by one
thread at a time; what it hands out (state, rows, views) is never mutated and may be kept.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass

import numpy as np

from ..diagnosis import Diagnosis
from ..lazy import tf
from ..scenarios.contract import Array, Dataset, Outcome, Scenario
from ..scenarios.knobs import Config
from .history import History
from .program import BAD, RESCALED, Gradients, Program, Rows, State, program_for

KEPT_SNAPSHOTS = 16
SECONDS_BETWEEN_SNAPSHOTS = 1.0


@dataclass(frozen=True)
class Snapshot:
    """All that is needed to take one step again: the state before it and the knobs it had."""

    step: int
    state: State
    config: Config
    rows: Rows | None = None  # of this step alone, if it was measured
    message: str = ""  # what a check inside the graph said when it stopped the step


class Trainer:
    """Advances a run and keeps its history.

    `snapshots` holds the first bad steps and the latest ones, at most `KEPT_SNAPSHOTS`.
    """

    def __init__(self, scenario: Scenario, config: Config, dataset: Dataset) -> None:
        self.scenario = scenario
        self.config = dict(config)
        self.dataset = dataset
        generator = np.random.default_rng(int(config["seed"]))
        parameters = scenario.initialise(config, dataset, generator)
        self._shapes = {name: array.shape for name, array in parameters.items()}
        self.program = program_for(scenario, config, dataset, self._shapes)
        self.state = self.program.initial_state(parameters)
        self.history = History(self.program.names, self.program.sizes)
        self.snapshots: list[Snapshot] = []
        self.first_bad_step: int | None = None
        self.bad_steps = 0
        self.rescaled_steps = 0
        self.halted = False
        self._train = self.program.tensors(dataset.train)
        self._probe = self.program.tensors(dataset.probe)
        self._last_snapshot = -math.inf
        self.last_rows: Rows | None = None  # of the latest step

    @property
    def step(self) -> int:
        """Number of the step that comes next."""
        return int(self.state.step)

    def compile(self) -> bool:
        """Trace the burst now, so that the first step does not wait for it; False if another run
        of the same structure has done so already."""
        new = not self.program.traced
        self._burst(self.program, 0, stop_at_bad=True)
        return new

    def advance(self, steps: int) -> Rows:
        """Take up to `steps` steps in one compiled burst and return what was measured.

        It ends early at a bad step that is worth a snapshot. With `on_bad` = halt that step is not
        taken (`halted` is set, and advancing again tries it anew); otherwise it is taken as well.
        """
        halting = self.config["on_bad"] == "halt"
        stop = halting or self._snapshot_due()
        rows, message = self._burst_or_check(steps, stop)
        stopped = stop and bool(rows.status[-1] == BAD)
        self.halted = stopped and halting
        if stopped:
            self._keep_snapshot(self.snapshot(rows.last(), message))
            if not halting:
                rows = Rows.concatenate([rows.before_last(), self._take_bad_step(bool(message))])
        self._count(rows)
        self.history.add(rows)
        return rows

    def change(self, changes: Config) -> None:
        """Move knobs that act on the next step; the history remembers where."""
        for name, value in changes.items():
            knob = self.scenario.knob(name)
            if knob.structural:
                raise ValueError(f"{name} is structural: a new trainer is needed")
            if self.config[name] != value:
                self.config[name] = knob.check(value)
                self.history.mark(self.step, f"{knob.label}: {knob.format(value)}")

    def snapshot(self, rows: Rows | None = None, message: str = "") -> Snapshot:
        """The step that comes next, to be taken again at any time."""
        return Snapshot(self.step, self.state, dict(self.config), rows, message)

    def gradients(self, snapshot: Snapshot | None = None) -> Gradients:
        """The gradients of a bad step, or by default of the step that comes next, in full."""
        state, config = (snapshot.state, snapshot.config) if snapshot else (self.state, self.config)
        return self._unchecked().gradients(state, config, self._train)

    def diagnose(self, snapshot: Snapshot) -> Diagnosis:
        """Why the step of a snapshot is not finite."""
        program = self._unchecked()
        return program.diagnose(snapshot.state, snapshot.config, self._train)

    def through_time(self, snapshot: Snapshot | None = None) -> dict[str, Array]:
        """Gradient of the loss by the recurrence's state at each of its steps, of a bad step or of
        the one that comes next (see `Program.through_time`)."""
        state, config = (snapshot.state, snapshot.config) if snapshot else (self.state, self.config)
        return self._unchecked().through_time(state, config, self._train)

    def outcome(self) -> Outcome:
        """What the model has learned so far."""
        predictions = self.program.predict(self.state, self.config, self._probe)
        return self.scenario.outcome(predictions, self.dataset, self.config)

    def _burst_or_check(self, steps: int, stop: bool) -> tuple[Rows, str]:
        """A burst; where a check inside the graph raises, the steps up to that one, measured
        without the check, and what the check said."""
        before = self.state
        try:
            self.state, rows = self._burst(self.program, steps, stop)
            return rows, ""
        except tf.errors.InvalidArgumentError:
            self.state, taken = before, []
        while True:  # the burst's steps are lost with it: take them singly
            try:
                self.state, rows = self._burst(self.program, 1, stop)
                taken.append(rows)
                if len(taken) == steps or (stop and rows.status[0] == BAD):
                    return Rows.concatenate(taken), ""
            except tf.errors.InvalidArgumentError as error:
                if not self.scenario.checks:
                    raise
                _, rows = self._burst(self._unchecked(), 1, stop_at_bad=True)
                taken.append(rows._replace(status=np.array([BAD])))
                return Rows.concatenate(taken), _what_a_check_said(error.message)

    def _burst(self, program: Program, steps: int, stop_at_bad: bool) -> tuple[State, Rows]:
        return program.burst(self.state, self.config, self._train, steps, stop_at_bad=stop_at_bad)

    def _take_bad_step(self, checked: bool) -> Rows:
        """Skip or apply the step before which the run stands, as `on_bad` says."""
        program = self._unchecked() if checked else self.program
        self.state, rows = self._burst(program, 1, stop_at_bad=False)
        return rows._replace(status=np.array([BAD]))

    def _unchecked(self) -> Program:
        """The same program without checks that raise."""
        config = self.config | dict.fromkeys(self.scenario.checks, False)
        return program_for(self.scenario, config, self.dataset, self._shapes)

    def _snapshot_due(self) -> bool:
        return len(self.snapshots) < KEPT_SNAPSHOTS // 2 or (
            time.monotonic() - self._last_snapshot > SECONDS_BETWEEN_SNAPSHOTS
        )

    def _keep_snapshot(self, snapshot: Snapshot) -> None:
        kept = [s for s in self.snapshots if s.step != snapshot.step]
        if len(kept) == KEPT_SNAPSHOTS:  # the first half stays, the second half moves on
            del kept[KEPT_SNAPSHOTS // 2]
        self.snapshots = [*kept, snapshot]
        self._last_snapshot = time.monotonic()

    def _count(self, rows: Rows) -> None:
        bad = rows.step[rows.status == BAD]
        if len(bad) and self.first_bad_step is None:
            self.first_bad_step = int(bad[0])
        self.bad_steps += len(bad)
        self.rescaled_steps += int(np.sum(rows.status == RESCALED))
        self.last_rows = rows.last()


def _what_a_check_said(message: str) -> str:
    """The check's own sentence out of TensorFlow's account of where in the graph it stands."""
    said = [line for line in message.splitlines() if "Tensor had" in line]
    return re.sub(r"b'([^']*)'", r"\1", said[0]) if said else message.splitlines()[0]
