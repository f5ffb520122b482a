"""Runs of a part one after the other, for structures that cannot be computed together."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

from ..scenarios.contract import Scenario
from ..training.health import nonfinite
from ..training.trainer import Trainer
from .members import Ended, Member, Watch, fitting_steps


def run_singly(
    chosen: Scenario, members: Sequence[Member], steps: int, watch: Watch
) -> Iterator[Ended]:
    """Each run as a `Trainer` has it; fewer of them where the watch stopped."""
    for member in members:
        trainer = Trainer(chosen, member.config, member.dataset)
        trainer.compile()
        burst = 1
        while trainer.step < steps and not trainer.halted:
            if watch.stopped.is_set():
                return
            began = time.perf_counter()
            watch.call(partial(trainer.advance, min(burst, steps - trainer.step)))
            burst = fitting_steps(burst, time.perf_counter() - began)
            watch.survived([member.task], trainer.step)
        yield _ended(member, trainer)


def _ended(member: Member, trainer: Trainer) -> Ended:
    rows = trainer.last_rows
    assert rows is not None
    by_stage = [nonfinite(health[0]) > 0 for health in (rows.raw, rows.applied)]
    first = next((flags for flags in by_stage if flags.any()), by_stage[0])
    broke = tuple(n for n, bad in zip(trainer.program.names, first, strict=True) if bad)
    metric = next(iter(trainer.outcome().metrics.values()))
    return Ended(
        member=member,
        program=trainer.program,
        state=trainer.state,
        bad=trainer.halted,
        loss=float(rows.loss[0]),
        metric=float(metric),
        broke=broke,
    )
