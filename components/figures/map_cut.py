"""A cut through a map: loss and first bad step along a line of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.sweeps.grid import BROKEN, FINITE, Grid

from ..palette import palette
from .arrays import rounded, typed
from .layout import layout
from .map_axes import DrawnAxis

Index = tuple[int, int]
LOG_FROM = 50.0


def map_cut(
    grid: Grid,
    cells: Sequence[Index],
    axes: tuple[DrawnAxis, DrawnAxis],
    steps: int,
    *,
    dark: bool = False,
) -> dict[str, Any]:
    """Curve 0 is the loss of the finite cells, 1 the bad step of those that broke, 2 marks those
    that stayed finite. Along the axis on which the line goes through more cells; a cell that is
    not computed yet is a gap.

    Args:
        grid: flat; `cells` are places in it.
    """
    colours = palette(dark)
    along, other = axes if _reach(cells, 0) >= _reach(cells, 1) else axes[::-1]
    place = 0 if along is axes[0] else 1
    at = tuple(np.array(cells, np.intp).reshape(-1, 2).T)
    x = along.centres[at[place]]
    state, loss, bad = grid.state[at], grid.loss[at], grid.first_bad_step[at]
    finite, broken = state == FINITE, state == BROKEN
    some = loss[finite]
    log = bool(some.size and some.min() > 0 and some.max() >= LOG_FROM * some.min())
    title = along.title
    if _reach(cells, 1 - place) and other.title:
        title += f" (and {other.title} along the line)"
    names = along.names
    told = {"text": [names[i] for i in at[place].tolist()], "showlegend": False}
    common = {"type": "scatter", "x": typed(x), **told}
    traces = [
        {
            **common,
            "mode": "lines+markers",
            "y": typed(rounded(np.where(finite, loss, np.nan))),
            "line": {"color": colours.series[0], "width": 2},
            "marker": {"size": 6},
            "hovertemplate": "%{text}<br>final loss %{y:.4~g}<extra></extra>",
        },
        {
            **common,
            "mode": "lines+markers",
            "y": typed(np.where(broken, bad, np.nan)),
            "yaxis": "y2",
            "line": {"color": colours.broken[1], "width": 2},
            "marker": {"symbol": "x", "size": 8},
            "hovertemplate": "%{text}<br>broke at step %{y:,d}<extra></extra>",
        },
        {
            **common,
            "mode": "markers",
            "y": typed(np.where(finite, float(steps), np.nan)),
            "yaxis": "y2",
            "marker": {"symbol": "triangle-up-open", "size": 9, "color": colours.series[0]},
            "hovertemplate": "%{text}<br>finite for all %{y:,d} steps<extra></extra>",
        },
    ]
    axis = along.layout() | {"title": {"text": title, "standoff": 6}, "anchor": "y2"}
    upper = {"title": {"text": "final loss"}, "domain": [0.48, 1], "automargin": True}
    upper |= {"type": "log" if log else "linear", "exponentformat": "power", "nticks": 5}
    lower = {"title": {"text": "first bad step"}, "domain": [0, 0.4], "automargin": True}
    lower |= {"range": [-0.06 * steps, 1.12 * steps], "nticks": 4}
    return {"data": traces, "layout": layout(360, xaxis=axis, yaxis=upper, yaxis2=lower)}


def _reach(cells: Sequence[Index], place: int) -> int:
    return abs(cells[-1][place] - cells[0][place])
