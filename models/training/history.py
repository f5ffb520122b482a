"""History: what a run looked like, in a bounded number of columns.

Every column covers a range of steps, and each of its cells shows the worst step of that range.
When the columns are used up, neighbours are merged in pairs, so memory and pictures stay the same
size at step 100 and at step 1,000,000, and a bad step is never averaged away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .health import COUNTS, FIELDS

Array = np.ndarray[Any, Any]

COLUMNS = 256


@dataclass(frozen=True)
class HealthArrays:
    """Arrays [parameters, columns]: counts and `step` int64, magnitudes float64."""

    nan: Array
    posinf: Array
    neginf: Array
    zero: Array
    subnormal: Array
    max_abs: Array
    norm: Array
    step: Array

    @property
    def nonfinite(self) -> Array:
        return self.nan + self.posinf + self.neginf


@dataclass(frozen=True)
class HistoryView:
    """A copy of the history for drawing; P parameters, C columns.

    `loss` is the last of a column's steps, or the first non-finite one among them.
    `update_ratio` is the largest of a column's steps, NaN where it was not measured.
    """

    parameters: tuple[str, ...]
    sizes: Array  # int64 [P]
    first_step: Array  # int64 [C]
    last_step: Array  # int64 [C]
    loss: Array  # float64 [C]
    raw: HealthArrays
    applied: HealthArrays
    update_ratio: Array  # float64 [P, C]
    marks: tuple[tuple[int, str], ...]  # (step, what was changed there)


class _Cells(NamedTuple):
    """One array per kind of number; the columns are the first axis."""

    first: Array  # int64 [C]
    last: Array  # int64 [C]
    loss: Array  # float64 [C]
    raw: Array  # float64 [C, P, F]
    raw_step: Array  # int64 [C, P]
    applied: Array  # float64 [C, P, F]
    applied_step: Array  # int64 [C, P]
    ratio: Array  # float64 [C, P]


class History:
    """Accumulates rows of `Program.burst`; see the module for what is kept."""

    def __init__(
        self, parameters: tuple[str, ...], sizes: Array, columns: int = COLUMNS, marks: int = 32
    ) -> None:
        self.parameters = parameters
        self.sizes = sizes
        self.columns = columns
        self.width = 1  # steps in a full column
        self._most_marks = marks
        self._marks: list[tuple[int, str]] = []
        self._cells = _no_cells(len(parameters))

    def add(self, rows: Any) -> None:
        """Take in `Rows` of consecutive steps, in any number."""
        if not len(rows.step):
            return
        step = np.repeat(rows.step[:, None], len(self.parameters), axis=1)
        new = _Cells(
            rows.step, rows.step, rows.loss, rows.raw, step, rows.applied, step, rows.update_ratio
        )
        cells = _Cells(*(np.concatenate(pair) for pair in zip(self._cells, new, strict=True)))
        while True:
            cells = self._merge(cells)
            if len(cells.first) <= self.columns:
                break
            self.width *= 2
        self._cells = cells

    def mark(self, step: int, text: str) -> None:
        """Remember that something was changed before `step` (the oldest marks are dropped)."""
        self._marks = [*self._marks, (step, text)][-self._most_marks :]

    def view(self) -> HistoryView:
        c = self._cells
        return HistoryView(
            self.parameters,
            self.sizes,
            c.first,
            c.last,
            c.loss,
            _health_arrays(c.raw, c.raw_step),
            _health_arrays(c.applied, c.applied_step),
            c.ratio.T,
            tuple(self._marks),
        )

    def _merge(self, cells: _Cells) -> _Cells:
        """Merge neighbours until every column but the last covers `width` steps of the clock."""
        group = cells.first // self.width
        starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        if len(starts) == len(group):
            return cells
        raw, raw_step = _worst(cells.raw, cells.raw_step, self.sizes, starts)
        applied, applied_step = _worst(cells.applied, cells.applied_step, self.sizes, starts)
        return _Cells(
            cells.first[starts],
            np.maximum.reduceat(cells.last, starts),
            _loss(cells.loss, starts),
            raw,
            raw_step,
            applied,
            applied_step,
            np.fmax.reduceat(cells.ratio, starts),
        )


def badness(health: Array, sizes: Array) -> Array:
    """float64 [..., P]: how much a cell deserves to be seen. The more non-finite entries the
    worse, then an all-zero gradient, then the largest magnitude."""
    nonfinite = health[..., 0] + health[..., 1] + health[..., 2]
    all_zero = (health[..., 3] == sizes) & (nonfinite == 0)
    with np.errstate(divide="ignore"):
        magnitude = np.log10(health[..., 5])
    score = np.where(all_zero, 1e3, np.maximum(magnitude, -400.0))
    return np.where(nonfinite > 0, 1e4 + nonfinite, score)


def _worst(health: Array, step: Array, sizes: Array, starts: Array) -> tuple[Array, Array]:
    """Per group of columns and per parameter, the worst cell (the first of equals)."""
    score = badness(health, sizes)
    groups = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(score)]))
    worst = np.maximum.reduceat(score, starts)
    place = np.where(score == worst[groups], np.arange(len(score))[:, None], len(score))
    chosen = np.minimum.reduceat(place, starts)
    parameter = np.arange(score.shape[1])
    return health[chosen, parameter], step[chosen, parameter]


def _loss(loss: Array, starts: Array) -> Array:
    ends = np.r_[starts[1:], len(loss)]
    place = np.where(np.isfinite(loss), len(loss), np.arange(len(loss)))
    first_bad = np.minimum.reduceat(place, starts)
    return loss[np.where(first_bad < ends, first_bad, ends - 1)]


def _no_cells(parameters: int) -> _Cells:
    whole, shape = np.zeros(0, np.int64), (0, parameters)
    health, step = np.zeros((*shape, len(FIELDS))), np.zeros(shape, np.int64)
    return _Cells(whole, whole, np.zeros(0), health, step, health, step, np.zeros(shape))


def _health_arrays(health: Array, step: Array) -> HealthArrays:
    by_field = np.moveaxis(health, [2, 1, 0], [0, 1, 2])
    fields = dict(zip(FIELDS, by_field, strict=True))
    counts = {name: fields.pop(name).astype(np.int64) for name in COUNTS}
    return HealthArrays(**counts, **fields, step=step.T)
