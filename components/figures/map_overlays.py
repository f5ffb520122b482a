"""What is drawn over a map: a chosen cell, a line, a boundary, an optimiser's trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..palette import Palette
from .arrays import typed
from .map_axes import DrawnAxis

Trace = dict[str, Any]
Index = tuple[int, int]


class Overlay(Protocol):
    """`curves`: how many traces it always has, so that a click tells what was clicked."""

    @property
    def curves(self) -> int: ...

    def traces(self, x: DrawnAxis, y: DrawnAxis, colours: Palette) -> list[Trace]: ...


@dataclass(frozen=True)
class Spot:
    """A point of an overlay: the knobs' values, its story, and the number of its trial if any."""

    settings: Mapping[str, Any]
    story: str
    number: int | None = None


@dataclass(frozen=True)
class Spots:
    """Points where the knobs of both axes have values of their own; `knobs` names the axes'."""

    name: str
    spots: Sequence[Spot]
    knobs: Sequence[str]
    marker: Mapping[str, Any]
    joined: bool = False
    curves: int = 1

    def traces(self, x: DrawnAxis, y: DrawnAxis, colours: Palette) -> list[Trace]:
        placed = [
            (across, up, spot.story)
            for spot in self.spots
            for across, up in [self._place(spot, x, y)]
            if across is not None and up is not None
        ]
        marker = {"color": colours.edge, "line": {"color": colours.paper, "width": 1.5}}
        return [
            {
                "type": "scatter",
                "mode": "lines+markers" if self.joined else "markers",
                "x": typed(np.array([p[0] for p in placed], np.float64)),
                "y": typed(np.array([p[1] for p in placed], np.float64)),
                "text": [p[2] for p in placed],
                "hovertemplate": "%{text}<extra></extra>",
                "name": self.name,
                "showlegend": bool(placed),
                "marker": {**marker, **self.marker},
                "line": {"color": colours.edge, "width": 2.5, "dash": "dot"},
            }
        ]

    def _place(self, spot: Spot, x: DrawnAxis, y: DrawnAxis) -> tuple[float | None, float | None]:
        across = x.place(spot.settings[self.knobs[0]])
        return across, 0.0 if len(self.knobs) == 1 else y.place(spot.settings[self.knobs[1]])


@dataclass(frozen=True)
class Chosen:
    """A cell in a frame, and a line between two cells; None where there is none."""

    cell: Index | None = None
    line: tuple[Index, Index] | None = None
    curves: int = 4

    def traces(self, x: DrawnAxis, y: DrawnAxis, colours: Palette) -> list[Trace]:
        frame: list[tuple[float, float]] = []
        if self.cell is not None:
            i, j = self.cell
            left, right, low, high = x.edges[i], x.edges[i + 1], y.edges[j], y.edges[j + 1]
            frame = [(left, low), (right, low), (right, high), (left, high), (left, low)]
        ends = [(x.centres[i], y.centres[j]) for i, j in self.line or ()]
        rim, dots = {"color": colours.paper}, {"mode": "lines+markers"}
        return [
            _line(frame, {**rim, "width": 5}),
            _line(frame, {"color": colours.edge, "width": 2.5}),
            _line(ends, {**rim, "width": 5}) | dots | {"marker": {"size": 12}},
            _line(ends, {"color": colours.edge, "width": 2.5}) | dots | {"marker": {"size": 9}},
        ]


def _line(points: Sequence[tuple[float, float]], line: Mapping[str, Any]) -> Trace:
    array = np.array(points, np.float64).reshape(-1, 2)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": typed(array[:, 0].copy()),
        "y": typed(array[:, 1].copy()),
        "line": dict(line),
        "hoverinfo": "skip",
        "showlegend": False,
    }
