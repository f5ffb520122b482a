"""A sweep's results as arrays over its grid: what a map is drawn from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .plan import Index, Sweep
from .results import RunResult
from .running import SweepView

UNKNOWN, FINITE, BROKEN, FAILED = range(4)


@dataclass(frozen=True)
class Grid:
    """Arrays of the sweep's shape, or of a slice of it.

    state: uint8; UNKNOWN where no run has ended, BROKEN where any seed broke, else FAILED where any
        could not be computed, else FINITE.
    ended, broken: uint8, how many of the seeds have ended and have broken.
    first_bad_step: float64, the earliest of the seeds; NaN where none broke.
    loss, metric: float64, means over the seeds that stayed finite; NaN where none did.
    bad_loss: float64, the loss at `first_bad_step`, which may be NaN or infinite.
    mechanism, parameters: int16, places in `mechanisms` and `parameter_sets` of the run that broke
        first; −1 where none did.
    survived: int32, finite steps so far of the runs under way.
    source: int32 [shape, rank], the cell whose value a cell shows: itself where it is known, else
        the nearest known one of a coarser map; −1 where there is none yet.
    """

    state: NDArray[np.uint8]
    ended: NDArray[np.uint8]
    broken: NDArray[np.uint8]
    first_bad_step: NDArray[np.float64]
    loss: NDArray[np.float64]
    metric: NDArray[np.float64]
    bad_loss: NDArray[np.float64]
    mechanism: NDArray[np.int16]
    parameters: NDArray[np.int16]
    survived: NDArray[np.int32]
    source: NDArray[np.int32]
    mechanisms: tuple[str, ...]  # the most frequent first
    parameter_sets: tuple[tuple[str, ...], ...]

    @property
    def known(self) -> NDArray[np.bool_]:
        return self.state != UNKNOWN

    def flat(self, third: int = 0) -> Grid:
        """Two dimensions: of a third axis the values at this place, of one axis a single row."""
        if self.state.ndim == 2:
            return self
        at: Any = (..., third) if self.state.ndim == 3 else (slice(None), None)
        arrays = {
            field.name: getattr(self, field.name)[at]
            for field in fields(self)
            if field.name not in ("source", "mechanisms", "parameter_sets")
        }
        return replace(self, **arrays, source=self._flat_source(third))

    def _flat_source(self, third: int) -> NDArray[np.int32]:
        """Sources of a flat grid: a source in another layer does not count."""
        if self.state.ndim == 1:
            column = np.where(self.source < 0, -1, 0)
            return np.concatenate([self.source, column], axis=-1)[:, None]
        return nearest(self.known[..., third])


def grid(sweep: Sweep, view: SweepView) -> Grid:
    """The grid as it stands in a view."""
    shape, results = sweep.shape, view.results.values()
    ended, broken, failed = (np.zeros(shape, np.uint8) for _ in range(3))
    first = np.full(shape, np.nan)
    loss, metric, bad_loss = np.zeros(shape), np.zeros(shape), np.full(shape, np.nan)
    mechanism, parameters = np.full(shape, -1, np.int16), np.full(shape, -1, np.int16)
    mechanisms = _most_frequent(r.mechanism for r in results if _broke(r))
    parameter_sets = _most_frequent(r.broke_first for r in results if _broke(r))
    place_of = {name: i for i, name in enumerate(mechanisms)}
    place_of_set = {names: i for i, names in enumerate(parameter_sets)}
    for result in results:
        at = result.task.index
        ended[at] += 1
        if result.failed:
            failed[at] += 1
        elif result.first_bad_step is None:
            loss[at] += result.loss
            metric[at] += result.metric
        else:
            broken[at] += 1
            if not first[at] <= result.first_bad_step:
                first[at], bad_loss[at] = result.first_bad_step, result.loss
                mechanism[at] = place_of[result.mechanism]
                parameters[at] = place_of_set[result.broke_first]
    finite = ended - broken - failed
    some = np.where(finite > 0, finite, np.nan)
    state = np.select(
        [broken > 0, failed > 0, ended > 0], [BROKEN, FAILED, FINITE], UNKNOWN
    ).astype(np.uint8)
    survived = np.zeros(shape, np.int32)
    for task, steps in view.survived.items():
        survived[task.index] = steps
    return Grid(
        state=state,
        ended=ended,
        broken=broken,
        first_bad_step=first,
        loss=loss / some,
        metric=metric / some,
        bad_loss=bad_loss,
        mechanism=mechanism,
        parameters=parameters,
        survived=survived,
        source=nearest(ended > 0),
        mechanisms=mechanisms,
        parameter_sets=parameter_sets,
    )


def nearest(known: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Sources of every cell, see `Grid`: a coarse cell stands for the block around it."""
    shape = known.shape
    source = np.full((*shape, len(shape)), -1, np.int32)
    stride = 1
    while True:
        missing = source[..., 0] < 0
        axes = [np.minimum(np.round(np.arange(n) / stride) * stride, n - 1) for n in shape]
        snapped = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).astype(np.int32)
        there = missing & known[tuple(np.moveaxis(snapped, -1, 0))]
        source[there] = snapped[there]
        if stride >= max(shape) or not (source[..., 0] < 0).any():
            return source
        stride *= 2


def along(start: Index, end: Index) -> list[Index]:
    """The cells nearest to a straight line from one cell to another, both included."""
    count = max(abs(a - b) for a, b in zip(start, end, strict=True)) + 1
    places = zip(*(np.linspace(a, b, count) for a, b in zip(start, end, strict=True)), strict=True)
    return [tuple(math.floor(place + 0.5) for place in at) for at in places]


def _broke(result: RunResult) -> bool:
    return result.first_bad_step is not None and not result.failed


def _most_frequent(things: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(thing for thing, _ in Counter(things).most_common())
