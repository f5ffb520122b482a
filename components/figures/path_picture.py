"""The way of a non-finite value: from its origin through operations to the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from ..palette import STATES, palette
from .arrays import typed
from .layout import layout

if TYPE_CHECKING:
    from models.diagnosis.report import Origin, Step

ROW = 40  # pixels
LANES = ("forward", "backward")


@dataclass(frozen=True)
class Stop:
    """Operations that follow one another on one source line, in one phase; told as one."""

    phase: str
    place: str
    steps: tuple[Step, ...]

    @property
    def label(self) -> str:
        names = list(dict.fromkeys(step.op for step in self.steps))
        shown = ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]}"
        count = sum(step.repeats for step in self.steps)
        return f"{shown} ({count} operations)" if count > 1 else shown


def stops(origin: Origin) -> list[Stop]:
    """The origin's path, folded by source line and phase."""

    def where(step: Step) -> tuple[str, str]:
        source = step.source
        place = f"{source.file.rsplit('/', 1)[-1]}:{source.line}" if source else "no line"
        return step.phase, place

    return [Stop(*key, tuple(steps)) for key, steps in groupby(origin.path, where)]


def path_picture(
    chain: Sequence[Stop], reached: Sequence[str], *, dark: bool = False
) -> dict[str, Any]:
    """Stops from top to bottom, forward ones in the left lane and backward ones in the right one.

    Curve 0 is the one that is clicked; its point is the stop's number.
    """
    colours = palette(dark)
    lane = np.array([LANES.index(stop.phase) if stop.phase in LANES else 0 for stop in chain])
    kinds = [kind_of(stop) for stop in chain]
    state_colours = colours.states()
    colour = [
        colours.finite[len(colours.finite) // 2] if k is None else state_colours[k] for k in kinds
    ]
    symbol = ["circle" if k is None else STATES[k].symbol.replace("-thin", "") for k in kinds]
    text = [f"<b>{stop.label}</b>  {stop.place}" for stop in chain]
    hover = ["<br>".join(_numbers(step) for step in stop.steps[:8]) for stop in chain]
    end = len(chain)
    named = ", ".join(reached) if len(reached) <= 4 else f"{reached[0]} … {reached[-1]}"
    lines = {
        "type": "scatter",
        "mode": "markers+text",
        "x": typed(lane.astype(np.float32)),
        "y": typed(np.arange(end, dtype=np.float32)),
        "text": text,
        "textposition": "middle right",
        "marker": {"symbol": symbol, "color": colour, "size": 14},
        "customdata": hover,
        "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
    }
    goal = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [1],
        "y": [end],
        "text": [f"<b>{len(reached)} reached</b>: {named}"],
        "textposition": "middle right",
        "marker": {"symbol": "square", "color": colours.nan, "size": 14},
        "hovertemplate": "<br>".join(reached) + "<extra></extra>",
        "cliponaxis": False,
    }
    track = {
        "type": "scatter",
        "mode": "lines",
        "x": [*lane.tolist(), 1],
        "y": list(range(end + 1)),
        "line": {"color": colours.muted, "width": 1.5},
        "hoverinfo": "skip",
    }
    return {
        "data": [lines, goal, track],
        "layout": layout(
            70 + ROW * (end + 1),
            showlegend=False,
            xaxis={
                "range": [-0.2, 3.2],
                "tickvals": [0, 1],
                "ticktext": list(LANES),
                "side": "top",
                "showgrid": False,
                "zeroline": False,
                "fixedrange": True,
            },
            yaxis={"range": [end + 0.6, -0.6], "visible": False, "fixedrange": True},
        ),
    }


def kind_of(stop: Stop) -> int | None:
    """Index into `STATES` of what its last operation made, or None if that was finite."""
    last = stop.steps[-1]
    names = [state.name for state in STATES]
    if last.nan:
        return names.index("NaN")
    return names.index("+Inf") if last.inf else None


def _numbers(step: Step) -> str:
    inputs = ", ".join(_short(value) for value in step.inputs)
    return f"{step.op}({inputs}): {step.nan:,} NaN, {step.inf:,} Inf of {step.size:,}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
