"""How an axis of a map is drawn: edges, centres and ticks of its cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from models.scenarios.knobs import format_number

from .arrays import shortest, typed
from .layout import step_axis

if TYPE_CHECKING:
    from models.sweeps.axes import Axis

LABELLED = 16  # values of a list that get a tick each, at most
DECADES = 2  # from as many on, a logarithmic axis has powers of ten for its ticks


@dataclass(frozen=True)
class DrawnAxis:
    """A place on the axis is a number, its log10 where `log`, or the index in a list of `names`.

    Plotly's own logarithmic axis is not used: it finds the cell under the pointer with a tolerance
    of 1e-9 cells of equal width, which over ten decades is wider than the first cells.
    """

    title: str
    edges: NDArray[np.floating[Any]]  # [n + 1], places
    centres: NDArray[np.floating[Any]]  # [n], places
    values: tuple[Any, ...]
    log: bool = False
    listed: bool = False

    @classmethod
    def of(cls, axis: Axis, label: str) -> DrawnAxis:
        """Numbers that rise are drawn to scale, anything else as a list."""
        values = axis.values
        numbers = len(values) > 1 and all(type(value) in (int, float) for value in values)
        scale = np.array(values if numbers else (), np.float64)
        if not numbers or not np.all(np.diff(scale) > 0) or (axis.log and scale[0] <= 0):
            return cls.of_list(label, values)
        if axis.log:
            scale = np.log10(scale)
        inner = (scale[1:] + scale[:-1]) / 2
        ends = 2 * scale[0] - inner[0], 2 * scale[-1] - inner[-1]
        return cls(label, np.array([ends[0], *inner, ends[1]]), scale, values, log=axis.log)

    @classmethod
    def of_list(cls, label: str, values: tuple[Any, ...]) -> DrawnAxis:
        places = np.arange(len(values), dtype=np.float64)
        return cls(label, np.arange(len(values) + 1) - 0.5, places, values, listed=True)

    def place(self, value: Any) -> float | None:
        """Where a value stands on the axis; None where it does not."""
        if self.listed:
            return float(self.values.index(value)) if value in self.values else None
        if self.log:
            return math.log10(value) if value > 0 else None
        return float(value)

    @property
    def span(self) -> list[float]:
        return [float(self.edges[0]), float(self.edges[-1])]

    @property
    def names(self) -> list[str]:
        """Each value in a word."""
        return [
            format_number(float(f"{v:.4g}")) if type(v) is float else str(v) for v in self.values
        ]

    def layout(self) -> dict[str, Any]:
        """Plotly's axis, showing all cells at first."""
        low, high = self.span
        parts: dict[str, Any] = {}
        if self.listed:
            every = -(-len(self.values) // LABELLED)
            parts = _ticks(list(range(0, len(self.values), every)), self.names[::every])
        elif self.log and high - low >= DECADES:
            parts = {"tickprefix": "10<sup>", "ticksuffix": "</sup>"}
            parts["dtick"] = max(1, round((high - low) / 8))
            parts["tick0"] = 0
        elif self.log:
            decades = range(math.floor(low), math.ceil(high))
            marks = [float(f"{m}e{d}") for d in decades for m in (1, 2, 5)]
            parts = _ticks([math.log10(mark) for mark in marks], [f"{mark:g}" for mark in marks])
        return step_axis(
            title={"text": self.title, "standoff": 6},
            range=self.span,
            tickformat="",
            ticks="outside",
            **parts,
        )

    def plane(self, across: bool) -> dict[str, Any]:
        """Each cell's value as a plane of a heatmap's `customdata`."""
        shape = (1, -1) if across else (-1, 1)
        if self.listed:
            places = np.arange(len(self.values), dtype=np.uint8).reshape(shape)
            return {**typed(places), "words": self.names}
        return typed(shortest(np.array(self.values, np.float64)).reshape(shape))

    def hover(self, field: int) -> str:
        """The value in a hover template, `plane` being this field."""
        return f"%{{customdata[{field}]{'' if self.listed else ':.4~g'}}}"


def _ticks(places: list[Any], texts: list[str]) -> dict[str, Any]:
    return {"tickvals": places, "ticktext": texts}
