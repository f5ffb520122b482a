"""How an axis of a map is drawn: edges, centres and ticks of its cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .arrays import shortest, typed
from .layout import step_axis

if TYPE_CHECKING:
    from models.sweeps.axes import Axis

LABELLED = 16  # values of a list that get a tick each, at most


@dataclass(frozen=True)
class DrawnAxis:
    """`values` where the axis is a list, else empty: the list's places are 0, 1, …"""

    title: str
    edges: NDArray[np.floating[Any]]  # [n + 1]
    centres: NDArray[np.floating[Any]]  # [n]
    log: bool
    values: tuple[Any, ...] = ()

    @classmethod
    def of(cls, axis: Axis, label: str) -> DrawnAxis:
        """Numbers that rise are drawn to scale, anything else as a list."""
        values = axis.values
        if len(values) < 2 or not all(type(value) in (int, float) for value in values):
            return cls.listed(label, values)
        centres = np.array(values, np.float64)
        if not np.all(np.diff(centres) > 0) or (axis.log and centres[0] <= 0):
            return cls.listed(label, values)
        scale = np.log10(centres) if axis.log else centres
        inner = (scale[1:] + scale[:-1]) / 2
        ends = scale[0] - (inner[0] - scale[0]), scale[-1] + (scale[-1] - inner[-1])
        edges = np.array([ends[0], *inner, ends[1]])
        return cls(label, 10**edges if axis.log else edges, centres, axis.log)

    @classmethod
    def listed(cls, label: str, values: tuple[Any, ...]) -> DrawnAxis:
        places = np.arange(len(values), dtype=np.float64)
        return cls(label, np.arange(len(values) + 1) - 0.5, places, False, values)

    def place(self, value: Any) -> float | None:
        """Where a value stands on the axis; None where it does not."""
        if self.values:
            return float(self.values.index(value)) if value in self.values else None
        return float(value)

    @property
    def span(self) -> list[float]:
        """First and last edge as Plotly takes a range."""
        ends = self.edges[[0, -1]]
        return (np.log10(ends) if self.log else ends).tolist()

    def layout(self) -> dict[str, Any]:
        """Plotly's axis, showing all cells at first."""
        parts: dict[str, Any] = {
            "title": {"text": self.title, "standoff": 6},
            "type": "log" if self.log else "linear",
            "range": self.span,
            "tickformat": "",
            "exponentformat": "power",
            "ticks": "outside",
        }
        if self.log and self.span[1] - self.span[0] >= 2:
            parts["dtick"] = max(1, round((self.span[1] - self.span[0]) / 8))
        if self.values:
            every = -(-len(self.values) // LABELLED)
            parts["tickvals"] = list(range(0, len(self.values), every))
            parts["ticktext"] = [str(value) for value in self.values[::every]]
        return step_axis(**parts)

    def plane(self, across: bool) -> dict[str, Any]:
        """Each cell's value as a plane of a heatmap's `customdata`."""
        shape = (1, -1) if across else (-1, 1)
        if self.values:
            places = np.arange(len(self.values), dtype=np.uint8).reshape(shape)
            return {**typed(places), "words": [str(value) for value in self.values]}
        return typed(shortest(self.centres).reshape(shape))

    def hover(self, field: int) -> str:
        """The value in a hover template, `plane` being this field."""
        return f"%{{customdata[{field}]{'' if self.values else ':.4~g'}}}"
