"""A walk: one run from its seed to the horizon or to its first bad step, in short bursts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..lazy import tf
from ..scenarios.contract import Dataset, Scenario
from ..scenarios.knobs import Config
from ..training.health import nonfinite
from ..training.history import History, HistoryView
from ..training.program import RESCALED, Program, Rows, State
from ..training.trainer import Trainer
from .fidelity import Place

BURST_SECONDS = 0.075  # as long as a live run keeps a worker
COLUMNS = 64  # evidence is drawn small


@dataclass
class Walk:
    """A run under way and what was seen of it.

    The bad step at which it halts is measured but not taken.
    """

    scenario: Scenario
    config: Config
    dataset: Dataset
    largest: float = 0.0  # magnitude in any gradient so far
    _burst: int = 1
    _trainer: Trainer = field(init=False)
    start: State = field(init=False)

    def __post_init__(self) -> None:
        config = self.config | {"on_bad": "halt"}
        self._trainer = Trainer(self.scenario, config, self.dataset)
        self.start = self._trainer.state
        self._trainer.history = History(self.program.names, self.program.sizes, columns=COLUMNS)

    def compile(self) -> bool:
        """False if another run of the same structure has done so already."""
        return self._trainer.compile()

    @property
    def compiled(self) -> bool:
        return self.program.traced

    def advance(self, until: int) -> Iterator[None]:
        """Take steps up to number `until`, one burst between two items."""
        while self.step < until and not self._trainer.halted:
            wanted = min(self._burst, until - self.step)
            began = time.perf_counter()
            rows = self._trainer.advance(wanted)
            seconds = time.perf_counter() - began
            fine = rows.raw[rows.status != RESCALED]
            self.largest = max(self.largest, float(fine[..., 5].max(initial=0.0)))
            if len(rows.step) == wanted:
                fitting = int(wanted * BURST_SECONDS / seconds)
                self._burst = int(np.clip(fitting, 1, 2 * self._burst))
            yield

    def starts_like(self, other: Walk) -> bool:
        """Whether both start from the same weights (to within float32) and the same data."""
        ours, theirs = self.start.parameters, other.start.parameters
        return (
            [a.shape for a in ours] == [b.shape for b in theirs]
            and all(
                np.allclose(a, b, rtol=1e-6, atol=0.0) for a, b in zip(ours, theirs, strict=True)
            )
            and same_data(self.dataset, other.dataset)
        )

    @property
    def program(self) -> Program:
        return self._trainer.program

    @property
    def step(self) -> int:
        """Steps taken."""
        return self._trainer.step

    @property
    def first_bad_step(self) -> int | None:
        return self._trainer.first_bad_step

    @property
    def last(self) -> Rows:
        """Rows of the last step that was measured."""
        assert self._trainer.last_rows is not None
        return self._trainer.last_rows

    @property
    def loss(self) -> float:
        return float(self.last.loss[0])

    @property
    def place(self) -> Place:
        """Where it stands: before the next step, or before the bad one."""
        names, state = self.program.names, self._trainer.state
        return Place(
            self.step, {n: p.numpy() for n, p in zip(names, state.parameters, strict=True)}
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.program.names

    @property
    def broken(self) -> int:
        """Parameters whose latest gradient is not finite, as computed (before clipping)."""
        return int(np.sum(nonfinite(self.last.raw[0]) > 0))

    @property
    def broken_after_clipping(self) -> int:
        return int(np.sum(nonfinite(self.last.applied[0]) > 0))

    @property
    def still(self) -> int:
        """Parameters whose latest gradient is zero in every entry."""
        return int(np.sum(self.last.raw[0, :, 3] == self.program.sizes))

    @property
    def largest_number(self) -> float:
        """That the run's dtype can hold."""
        dtype = tf.dtypes.as_dtype(self.program.compute_dtype)
        return float(dtype.max)

    @property
    def broken_of(self) -> str:
        return f"{self.broken} of {len(self.parameters)}"

    @property
    def watched(self) -> int:
        """Steps measured: those taken and the bad one."""
        return self.step if self.first_bad_step is None else self.first_bad_step + 1

    def metric(self) -> tuple[str, float]:
        """Name and value of the scenario's training metric, as it stands."""
        return next(iter(self._trainer.outcome().metrics.items()))

    def view(self) -> HistoryView:
        return self._trainer.history.view()


def same_data(a: Dataset, b: Dataset) -> bool:
    return a is b or all(np.array_equal(a.train[name], b.train[name]) for name in a.train)
