"""Headroom: how far the gradients are from overflow, and when they will get there at this rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .history import HistoryView

FEWEST_COLUMNS = 12
RECENT = 0.5  # share of the columns, the latest, that a trend is read from
STEADY = 0.9  # least share of the variance that a straight line must explain
FASTEST_FORGOTTEN = 1e-4  # factors of ten a step; a slower trend is none

# Smallest subnormal, smallest normal and largest number of a dtype.
RANGES = {
    "float64": (4.9406564584124654e-324, 2.2250738585072014e-308, 1.7976931348623157e308),
    "float32": (1.401298464324817e-45, 1.1754943508222875e-38, 3.4028234663852886e38),
    "float16": (5.960464477539063e-08, 6.103515625e-05, 65504.0),
    "bfloat16": (9.183549615799121e-41, 1.1754943508222875e-38, 3.3895313892515355e38),
}


@dataclass(frozen=True)
class Headroom:
    """`factors`: powers of ten from the largest present gradient to the dtype's largest number.

    `per_step`: its growth in powers of ten a step, and `steps_left` until it overflows at this
    rate; both None where there is no steady growth.
    """

    parameter: str
    largest: float
    factors: float
    per_step: float | None
    steps_left: int | None


def headroom(view: HistoryView, dtype: str) -> Headroom | None:
    """Of the parameter that is nearest to overflow; None before the first step or when no gradient
    has a finite entry other than 0."""
    if not len(view.first_step):
        return None
    present = view.raw.max_abs[:, -1]
    if not (present > 0).any():
        return None
    nearest = int(np.argmax(present))
    largest = float(present[nearest])
    factors = float(np.log10(RANGES[dtype][2]) - np.log10(largest))
    per_step = _trend(view, nearest)
    steps_left = None if per_step is None else max(0, round(factors / per_step))
    return Headroom(view.parameters[nearest], largest, factors, per_step, steps_left)


def _trend(view: HistoryView, parameter: int) -> float | None:
    """Slope of log10 of the largest magnitude over the latest columns, if it is a steady rise."""
    columns = max(FEWEST_COLUMNS, int(len(view.last_step) * RECENT))
    size, step = view.raw.max_abs[parameter, -columns:], view.last_step[-columns:]
    if len(size) < FEWEST_COLUMNS or (size <= 0).any():
        return None
    x, y = step.astype(np.float64), np.log10(size)
    slope, offset = np.polyfit(x - x[0], y, 1)
    spread = np.sum((y - y.mean()) ** 2)
    unexplained = np.sum((y - (slope * (x - x[0]) + offset)) ** 2)
    if slope < FASTEST_FORGOTTEN or unexplained > (1 - STEADY) * spread:
        return None
    return float(slope)
