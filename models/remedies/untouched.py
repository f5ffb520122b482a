"""The run as it stands: what every remedy is measured against."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .cost import Pace, round_of
from .fidelity import Fidelity, Place
from .result import Result
from .setting import PLAIN, TRACES, Setting, Work, advanced, compiled
from .walk import Walk

FEWEST_STEPS = 200
SEARCH_STEPS, SEARCH_SECONDS = 2000, 15.0  # how long it is given to break


@dataclass(frozen=True)
class Untouched:
    """`place`: the weights before the step that broke, or at the end; `horizon`: the steps that
    each remedy is given."""

    walk: Walk
    place: Place
    horizon: int
    pace: Pace
    steps_of_a_round: int  # when steps are timed
    result: Result

    @property
    def bad(self) -> int | None:
        return self.walk.first_bad_step


def untouched(setting: Setting, steps: int | None) -> Work[Untouched]:
    """Run for `steps`; or, without them, until it breaks, and give the remedies twice as long."""
    walk = Walk(setting.scenario, setting.config, setting.dataset)
    yield from compiled(walk)
    if steps is None:
        began = time.monotonic()
        for _ in walk.advance(SEARCH_STEPS):
            if walk.step >= FEWEST_STEPS and time.monotonic() - began > SEARCH_SECONDS:
                break
            yield PLAIN
        bad = walk.first_bad_step
        horizon = max(FEWEST_STEPS, walk.step if bad is None else 2 * bad)
    else:
        yield from advanced(walk, steps)
        horizon = steps
    yield TRACES
    metric = walk.metric()
    pace = Pace(walk)
    yield PLAIN
    steps_of_a_round = yield from round_of(pace)
    return Untouched(walk, walk.place, horizon, pace, steps_of_a_round, _row(walk, *metric))


def _row(walk: Walk, metric_name: str, metric: float) -> Result:
    bad = walk.first_bad_step
    if bad is None:
        reason = f"Finite for all {walk.step:,} steps."
    else:
        loss = f"loss {walk.loss:.3g}"
        reason = f"Breaks at step {bad:,}: {walk.broken_of} gradients non-finite, {loss}."
    return Result(
        name="untouched",
        title="As it stands",
        knobs={},
        said="",
        proposed=False,
        answers_another_question=False,
        verdict="untouched",
        reason=reason,
        first_bad_step=bad,
        steps=walk.watched,
        loss=walk.loss,
        metric_name=metric_name,
        metric=metric,
        comparable=True,
        fidelity=Fidelity(note="" if bad is None else "not finite"),
        cost=1.0,
        evidence=(walk.view(), walk.view()),
    )
