"""The runs of a part: how they start, how they end, and how the way there is watched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..scenarios.contract import Array, Dataset
from ..scenarios.knobs import Config
from ..training.live import pool
from ..training.program import Program, State
from .plan import Task

BURST_SECONDS = 0.075  # so that live runs, which share the processor, get their turns


@dataclass(frozen=True)
class Member:
    """A run that is about to start; equal data sets are one object."""

    task: Task
    config: Config
    dataset: Dataset
    parameters: dict[str, Array]


@dataclass(frozen=True)
class Ended:
    """A run after its last step, or before its first bad one, which was tried and not taken.

    `loss` is that of the latest step, the bad one included; `broke` names the parameters whose
    gradient was not finite in it, `metric` is the scenario's first.
    """

    member: Member
    program: Program
    state: State
    bad: bool
    loss: float
    metric: float
    broke: tuple[str, ...]


class Watch:
    """What whoever waits for a part in the same process sees of it, and stops it by."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def call(self, work: Callable[[], Any]) -> Any:
        """Does a piece of work of about `BURST_SECONDS`, here and now or wherever it fits."""
        return work()

    def ended(self, result: Any) -> None:
        """A run has ended with this `RunResult`."""

    def survived(self, tasks: Sequence[Task], steps: int) -> None:
        """These runs go on after so many steps, all finite."""


class TurnTaking(Watch):
    """Lets a part's bursts take turns with the live runs of this process."""

    def call(self, work: Callable[[], Any]) -> Any:
        return pool.submit(work).result()


def fitting_steps(steps: int, seconds: float) -> int:
    """How many steps the next burst should have, after one of `steps` that took `seconds`."""
    return max(1, min(int(steps * BURST_SECONDS / max(seconds, 1e-9)), 2 * steps))
