"""Curves over the steps, with a rail above for what a curve cannot show: NaN and Inf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..palette import Palette
from .arrays import planes, rounded, shortest, smallest, typed
from .layout import layout, step_axis
from .states import FINITE, mark_traces, state_trace, thinned

if TYPE_CHECKING:
    from models.training.history import HistoryView

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
RAIL_MARKS = 40
LABELLED_CHANGES = 8
Trace = dict[str, Any]


def step_edges(view: HistoryView) -> NDArray[np.float64]:
    """[C + 1] borders of the columns on the axis of steps."""
    return np.append(view.first_step - 0.5, view.last_step[-1:] + 0.5)


def view_axis(view: HistoryView) -> dict[str, Any]:
    """The axis of steps, ending where the columns end (marks would stretch it)."""
    if not len(view.first_step):
        return step_axis()
    low, high = int(view.first_step[0]) - 0.5, int(view.last_step[-1]) + 0.5
    return step_axis(int(high - low), autorangeoptions={"clipmin": low, "clipmax": high})


def parameter_lines(
    view: HistoryView, values: NDArray[np.float64], hover: str, colours: Palette
) -> list[Trace]:
    """One line a parameter for a logarithmic axis: what is not positive and finite is a gap.

    Curve i is parameter i, with a pair of colour and dash of its own.
    """
    steps = typed(smallest(view.last_step))
    drawn = np.where(np.isfinite(values) & (values > 0), values, np.nan)
    lines = []
    for i, name in enumerate(view.parameters):
        turn, colour = divmod(i, len(colours.series))
        line = {"color": colours.series[colour], "dash": DASHES[turn % len(DASHES)], "width": 1.6}
        lines.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": steps,
                "y": typed(rounded(drawn[i])),
                "name": name,
                "line": line,
                "hovertemplate": f"<b>{name}</b><br>step %{{x:,d}}<br>{hover}<extra></extra>",
            }
        )
    return [*lines, *lone_points(view, drawn, colours)]


def lone_points(view: HistoryView, values: NDArray[np.float64], colours: Palette) -> list[Trace]:
    """Dots for finite values between gaps, where a line has nothing to join; [] if there are none.

    Args:
        values: [curves, C], NaN in the gaps.
    """
    known = np.pad(np.isfinite(values), [(0, 0), (1, 1)])
    lone = known[:, 1:-1] & ~known[:, :-2] & ~known[:, 2:]
    if not lone.any():
        return []
    rows, columns = thinned(lone, (1, max(1, lone.shape[1] // RAIL_MARKS)))
    shades = [colours.series[row % len(colours.series)] for row in rows]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": typed(smallest(view.last_step[columns])),
            "y": typed(rounded(values[rows, columns])),
            "marker": {"size": 4, "color": shades},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]


def rail(
    view: HistoryView,
    codes: NDArray[np.uint8],
    hover: str,
    details: Sequence[NDArray[Any]],
    colours: Palette,
) -> list[Trace]:
    """A strip on the second y axis with the state [C] of each column; [] if all are finite.

    Args:
        hover: template; its `customdata[i]` is details[i], each [C].
    """
    if not np.any(codes != FINITE):
        return []
    edges = step_edges(view)
    place = {"x": typed(shortest(edges)), "y": ["not finite"], "yaxis": "y2"}
    strip = state_trace(codes[None], place, colours) | {
        "hoverinfo": "all",
        "customdata": planes(*(typed(item[None]) for item in details)),
        "hovertemplate": f"{hover}<extra></extra>",
    }
    block = (1, max(1, round(len(codes) / RAIL_MARKS)))
    centres = (edges[1:] + edges[:-1]) / 2
    marks = mark_traces(codes[None], centres, ["not finite"], block, colours, badges=True)
    return [strip, *({**trace, "yaxis": "y2"} for trace in marks)]


def curve_layout(
    view: HistoryView, title: str, *, log: bool, railed: bool, colours: Palette, **parts: Any
) -> dict[str, Any]:
    """Layout of a figure of curves; `parts["shapes"]` are added to the marks of changes."""
    top = 0.92 if railed else 1.0
    shapes, notes = _changes(view, colours)
    axis = {
        "title": {"text": title, "standoff": 6},
        "type": "log" if log else "linear",
        "domain": [0, top - 0.03 if railed else 1],
        "automargin": True,
        "zeroline": False,
        "exponentformat": "power",
        "nticks": 5,
    }
    strip = {
        "domain": [top, 1],
        "type": "category",
        "automargin": True,
        "fixedrange": True,
        "showgrid": False,
        "tickfont": {"size": 11},
    }
    extra = {"yaxis2": strip} if railed else {}
    shapes = [*parts.pop("shapes", []), *shapes]
    return layout(
        parts.pop("height", 300),
        xaxis=view_axis(view),
        yaxis=axis,
        shapes=shapes,
        annotations=notes,
        **extra,
        **parts,
    )


def parameter_legend(names: Sequence[str]) -> dict[str, Any]:
    """Parts of the layout: a legend below the curves, with room for its rows."""
    width = max((len(name) for name in names), default=1) * 7 + 48
    rows, narrow_rows = (-(-len(names) * width // pixels) for pixels in (1000, 320))
    return {
        "height": 290 + 20 * rows,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
            "font": {"size": 11},
        },
        "narrow": {"height": 290 + 20 * narrow_rows},
    }


def _changes(view: HistoryView, colours: Palette) -> tuple[list[Trace], list[Trace]]:
    """Upright lines where a knob was moved, the latest with what it was moved to."""
    line = {"color": colours.muted, "width": 1, "dash": "dot"}
    shapes = [
        {"type": "line", "x0": step, "x1": step, "yref": "paper", "y0": 0, "y1": 1, "line": line}
        for step, _ in view.marks
    ]
    notes = [
        {
            "x": step,
            "y": 1,
            "yref": "y domain",
            "text": text,
            "showarrow": False,
            "textangle": -90,
            "xanchor": "right",
            "yanchor": "top",
            "font": {"size": 11, "color": colours.muted},
        }
        for step, text in view.marks[-LABELLED_CHANGES:]
    ]
    return shapes, notes
