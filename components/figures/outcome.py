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
                    "color": colours.muted if target else colours.series[i - 1],
                    "width": 6 if target else 2.5,
                },
                "opacity": 0.55 if target else 1.0,
                "hovertemplate": f"{name} = %{{y:.4~g}} at %{{x:.4~g}}<extra></extra>",
            }
        )
    missing = [name for name, y in panel.lines.items() if not np.isfinite(y).all()]
    text = f"{', '.join(missing)}: not finite at some points" if missing else ""
    note = {"text": text, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.98}
    return {
        "data": traces,
        "layout": layout(
            320,
            xaxis=step_axis(title={"text": panel.x_label, "standoff": 6}, tickformat=""),
            yaxis={"title": {"text": panel.y_label}, "automargin": True},
            annotations=[note] if text else [],
        ),
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
