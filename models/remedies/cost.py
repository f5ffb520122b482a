"""Cost: the time of a step with a remedy relative to one without."""

from __future__ import annotations

import time

import numpy as np

from ..lazy import tf
from .setting import PLAIN, Work
from .walk import Walk

ROUNDS = 5
SECONDS_A_ROUND = 0.02  # at least one step, whatever it takes
MOST_STEPS = 256


class Pace:
    """Steps of one run to be timed, always from its seed; bad ones are skipped."""

    def __init__(self, walk: Walk) -> None:
        self._program, self._start = walk.program, walk.start
        self._train = self._program.tensors(walk.dataset.train)
        self._config = walk.config | {"on_bad": "skip"}

    def seconds(self, steps: int) -> float:
        """Of so many steps."""
        began = time.perf_counter()
        self._program.burst(self._start, self._config, self._train, steps, stop_at_bad=False)
        return time.perf_counter() - began


def round_of(pace: Pace) -> Work[int]:
    """Steps that fill a round."""
    steps = 1
    pace.seconds(steps)  # warms up
    while steps < MOST_STEPS:
        yield PLAIN
        if pace.seconds(steps) >= SECONDS_A_ROUND:
            break
        steps *= 2
    return steps


def relative_cost(remedy: Pace, untouched: Pace, steps: int) -> Work[float | None]:
    """Median of the ratios of `ROUNDS` rounds; None where a check stops the very first step.

    The two take turns, so that whatever else the machine does meets both.
    """
    try:
        remedy.seconds(steps)  # warms up
    except tf.errors.InvalidArgumentError:
        return None
    ratios = []
    for _ in range(ROUNDS):
        yield PLAIN
        ratios.append(remedy.seconds(steps) / untouched.seconds(steps))
    return float(np.median(ratios))
