"""Runs of a part in one compiled graph, burst by burst; those that end leave it at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from ..scenarios.contract import Array
from ..training.program import BAD, Program
from .members import Ended, Member, Watch, fitting_steps
from .vectorised import CannotMap, Many, Vectorised, states, take, vectorised

LARGEST_DATA = 64e6  # bytes of training data that a graph is given
NEAR_LOSS = {"float64": 1e-6, "float32": 1e-3, "float16": 0.05, "bfloat16": 0.2}  # relative
NEAR_UPDATE = 0.5  # of the update's norm
SLOWEST_STEP = 0.15  # seconds; slower ones are taken for half of the runs at a time
SLOW_IN_A_ROW = 3  # so many; a busy machine makes any single step slow


def run_together(
    program: Program, members: Sequence[Member], steps: int, watch: Watch
) -> Iterator[Ended]:
    """Every run as it would be alone, in the order in which they end; fewer of them where the watch
    stopped. Raises CannotMap before anything else."""
    size = sum(array.nbytes for array in members[0].dataset.train.values())
    own_data = len({id(member.dataset) for member in members}) > 1
    width = max(1, int(LARGEST_DATA // size)) if own_data else len(members)
    for first in range(0, len(members), width):
        yield from _advance(program, members[first : first + width], own_data, steps, watch)


def _advance(
    program: Program, members: Sequence[Member], own_data: bool, steps: int, watch: Watch
) -> Iterator[Ended]:
    form = vectorised(program, int(members[0].config["batch_size"]))
    arrays = [member.dataset.train for member in members]
    many = form.start(
        [member.parameters for member in members],
        [member.config for member in members],
        arrays if own_data else [],
    )
    bursts = Bursts(form, {} if own_data else program.tensors(arrays[0]), steps, watch)
    form.compile(many, bursts.shared)
    if not form.checked:
        _check(bursts, members, many)
    yield from bursts.follow(list(members), many, 0)


def _check(bursts: Bursts, members: Sequence[Member], many: Many) -> None:
    """CannotMap unless the first step of the first and the last run is what it is alone.

    TensorFlow maps some operations wrongly; a model that uses one must not be misjudged.
    """
    program = bursts.form.program
    before = states(many)
    for row in {0, len(members) - 1}:
        config, train = members[row].config, program.tensors(members[row].dataset.train)
        alone, rows = program.burst(before[row], config, train, 1, stop_at_bad=True)
        mapped = bursts.form.burst(take(many, np.array([row])), bursts.shared, 1)
        loss, near = float(mapped.loss[0]), NEAR_LOSS[program.compute_dtype]
        if bool(mapped.bad[0]) != bool(rows.status[0] == BAD) or not np.isclose(
            loss, rows.loss[0], rtol=near, equal_nan=True
        ):
            raise CannotMap(f"loss {loss} in place of {rows.loss[0]}")
        updates = [
            np.concatenate(
                [
                    np.ravel(np.asarray(new, np.float64) - old)
                    for new, old in zip(after, before[row].parameters, strict=True)
                ]
            )
            for after in (alone.parameters, states(mapped)[0].parameters)
        ]
        # Adam makes whole steps of gradients that are rounding alone, so some may differ.
        if np.linalg.norm(updates[1] - updates[0]) > NEAR_UPDATE * np.linalg.norm(updates[0]):
            raise CannotMap("another update of the parameters")
    bursts.form.checked = True


@dataclass(frozen=True)
class Bursts:
    """What all bursts of some runs have in common."""

    form: Vectorised
    shared: Mapping[str, Any]
    steps: int
    watch: Watch

    def follow(self, running: list[Member], many: Many, taken: int) -> Iterator[Ended]:
        """Runs that have taken so many steps, to their ends."""
        burst, slow = 1, 0
        while running and taken < self.steps and not self.watch.stopped.is_set():
            burst = min(burst, self.steps - taken)
            many, seconds = self.watch.call(partial(self._timed, many, burst))
            taken += burst
            bad = many.bad.numpy()
            if bad.any():
                yield from self._ended(running, many, bad)
                running = list(compress(running, ~bad))
                many = take(many, np.flatnonzero(~bad))
            self.watch.survived([member.task for member in running], taken)
            slow = slow + 1 if burst == 1 and seconds > SLOWEST_STEP else 0
            if slow == SLOW_IN_A_ROW and len(running) > 1:
                middle = len(running) // 2
                for half in (slice(None, middle), slice(middle, None)):
                    rows = np.arange(len(running))[half]
                    yield from self.follow(running[half], take(many, rows), taken)
                return
            burst = fitting_steps(burst, seconds)
        if taken == self.steps:
            yield from self._ended(running, many, np.ones(len(running), bool))

    def _timed(self, many: Many, steps: int) -> tuple[Many, float]:
        began = time.perf_counter()
        many = self.form.burst(many, self.shared, steps)
        return many, time.perf_counter() - began

    def _ended(self, running: list[Member], many: Many, chosen: Array) -> Iterator[Ended]:
        rows = np.flatnonzero(chosen)
        many = take(many, rows)
        members = [running[row] for row in rows]
        metrics = self._metrics(members, many)
        bad, loss, finite = many.bad.numpy(), many.loss.numpy(), many.finite.numpy()
        state, names = states(many), self.form.program.names
        for row, member in enumerate(members):
            by_stage = ~finite[row].reshape(-1, len(names))  # as computed, then as applied
            first = next((flags for flags in by_stage if flags.any()), by_stage[0])
            yield Ended(
                member=member,
                program=self.form.program,
                state=state[row],
                bad=bool(bad[row]),
                loss=float(loss[row]),
                metric=metrics[row],
                broke=tuple(compress(names, first)),
            )

    def _metrics(self, members: list[Member], many: Many) -> dict[int, float]:
        """Each run's metric, by its place."""
        program = self.form.program
        of_dataset: dict[int, list[int]] = {}
        for row, member in enumerate(members):
            of_dataset.setdefault(id(member.dataset), []).append(row)
        metrics = {}
        for rows in of_dataset.values():
            dataset = members[rows[0]].dataset
            probe = program.tensors(dataset.probe)
            predictions = self.form.predict(take(many, np.array(rows)), probe)
            for row, predicted in zip(rows, predictions, strict=True):
                outcome = program.scenario.outcome(predicted, dataset, members[row].config)
                metrics[row] = float(next(iter(outcome.metrics.values())))
        return metrics
