"""What a model has learned: curves against their target, and counts in a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..palette import palette
from .arrays import rounded, shortest, typed
from .layout import layout, step_axis

if TYPE_CHECKING:
    from models.scenarios.contract import Curves, Matrix


def curves_figure(panel: Curves, *, dark: bool = False) -> dict[str, Any]:
    """The target as a broad line, the others over it."""
    colours = palette(dark)
    x = typed(shortest(panel.x))
    traces = []
    for i, (name, y) in enumerate(panel.lines.items()):
        target = name == panel.target
        drawn = np.where(np.isfinite(y), y, np.nan)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "y": typed(rounded(drawn)),
                "name": name,
                "line": {
                    "color": colours.muted if target else colours.series[i - bool(panel.target)],
                    "width": 6 if target else 2.5,
                },
                "opacity": 0.55 if target else 1.0,
                "hovertemplate": f"{name} = %{{y:.4~g}} at %{{x:.4~g}}<extra></extra>",
            }
        )
    missing = [name for name, y in panel.lines.items() if not np.isfinite(y).all()]
    text = f"{', '.join(missing)}: not finite at some points" if missing and panel.target else ""
    y_title = {"text": panel.y_label}
    marks = [_mark(x, colours.muted) for x in panel.marks.values()]
    named = [_name(name, x, "x" in panel.log) for name, x in panel.marks.items()]
    note = {"text": text, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.98}
    return {
        "data": traces,
        "layout": layout(
            320,
            xaxis=step_axis(
                title={"text": panel.x_label, "standoff": 6},
                tickformat="",
                type="log" if "x" in panel.log else "linear",
                exponentformat="power",
            ),
            yaxis={
                "title": y_title,
                "automargin": True,
                "type": "log" if "y" in panel.log else "linear",
                "exponentformat": "power",
            },
            shapes=marks,
            annotations=[*named, note] if text else named,
        ),
    }


def _mark(x: float, colour: str) -> dict[str, Any]:
    line = {"color": colour, "width": 1.5, "dash": "dash"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _name(text: str, x: float, log: bool) -> dict[str, Any]:
    place = float(np.log10(x)) if log else x  # annotations on a log axis take the exponent
    return {
        "text": text,
        "x": place,
        "y": 1,
        "yref": "paper",
        "showarrow": False,
        "yanchor": "bottom",
        "font": {"size": 12},
    }


def matrix_figure(panel: Matrix, *, dark: bool = False) -> dict[str, Any]:
    """Counts as shades of blue, with the numbers in the cells."""
    colours = palette(dark)
    scale = [[i / (len(colours.finite) - 1), c] for i, c in enumerate(colours.finite)]
    share = panel.values / np.maximum(panel.values.sum(axis=1, keepdims=True), 1)
    return {
        "data": [
            {
                "type": "heatmap",
                "z": typed(share.astype(np.float32)),
                "zmin": 0,
                "zmax": 1,
                "x": list(panel.columns),
                "y": list(panel.rows),
                "text": [[f"{n:,}" for n in row] for row in panel.values.tolist()],
                "texttemplate": "%{text}",
                "textfont": {"size": 18},
                "colorscale": scale,
                "showscale": False,
                "xgap": 2,
                "ygap": 2,
                "hovertemplate": f"{panel.row_label} %{{y}}, {panel.column_label} %{{x}}: "
                "%{text} rows, %{z:.1%} of the row<extra></extra>",
            }
        ],
        "layout": layout(
            320,
            xaxis={"title": {"text": panel.column_label}, "type": "category", "automargin": True},
            yaxis={
                "title": {"text": panel.row_label},
                "type": "category",
                "automargin": True,
                "autorange": "reversed",
            },
        ),
    }
