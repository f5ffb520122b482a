"""The gradient by a recurrence's state at every time step, from the first step to the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.training.health import MAX_ABS, nonfinite

from ..palette import palette
from .arrays import shortest, typed
from .layout import layout, step_axis


def through_time(
    health: dict[str, NDArray[np.float64]], limit: float, *, dark: bool = False
) -> dict[str, Any]:
    """log10 of the largest finite entry of ∂loss/∂state, one curve over the whole recurrence.

    Args:
        health: name of a part → float64 [steps, FIELDS], in forward order. The gradient runs from
            right to left.
        limit: the dtype's largest number.
    """
    colours = palette(dark)
    rows = np.concatenate(list(health.values()))
    size, bad = rows[:, MAX_ABS], nonfinite(rows) > 0
    with np.errstate(divide="ignore"):
        log = np.where(size > 0, np.log10(size), np.nan)
    time = np.arange(1, len(rows) + 1)
    labels = [f"{name} step {t}" for name, part in health.items() for t in range(1, len(part) + 1)]
    ceiling = float(np.log10(limit))
    cross = {"symbol": "x-thin", "size": 7, "line": {"color": colours.nan, "width": 2}}
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "largest finite entry",
            "x": typed(time.astype(np.int32)),
            "y": typed(shortest(log)),
            "text": labels,
            "line": {"color": colours.series[0], "width": 2.5},
            "hovertemplate": "%{text}<br>10^%{y:.1f}<extra></extra>",
        }
    ]
    if bad.any():
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "× holds NaN or Inf",
                "x": typed(time[bad].astype(np.int32)),
                "y": typed(np.full(int(bad.sum()), ceiling, np.float32)),
                "text": [label for label, b in zip(labels, bad, strict=True) if b],
                "marker": cross,
                "hovertemplate": "%{text}: holds NaN or Inf<extra></extra>",
            }
        )
    borders = np.cumsum([len(part) for part in health.values()])
    starts = np.r_[0, borders[:-1]]
    shapes = [_line(x=[border + 0.5] * 2, y=[0, 1], yref="paper", colour=colours.muted)
              for border in borders[:-1]]  # fmt: skip
    shapes.append(_line(x=[0, 1], y=[ceiling] * 2, xref="paper", colour=colours.nan))
    notes = [
        _note(name, (start + border + 1) / 2, 0.02, "y domain")
        for name, start, border in zip(health, starts, borders, strict=True)
    ]
    return {
        "data": traces,
        "layout": layout(
            300,
            xaxis=step_axis(
                title={"text": "time step, forward (the gradient runs from right to left)"}
            ),
            yaxis={"title": {"text": "log10 |∂loss/∂state|"}, "automargin": True},
            shapes=shapes,
            annotations=[*notes, _note("largest number of the dtype", len(rows) / 2, ceiling, "y")],
        ),
    }


def growth(health: dict[str, NDArray[np.float64]]) -> tuple[float, str | None]:
    """Mean factor per step on the way back, and the first step (from the loss) that is not finite.

    The factor is taken over the steps whose gradient is wholly finite and not zero.
    """
    rows = np.concatenate(list(health.values()))[::-1]
    labels = [f"{name} step {t}" for name, part in health.items() for t in range(1, len(part) + 1)]
    bad = nonfinite(rows) > 0
    finite = int(np.argmax(bad)) if bad.any() else len(rows)
    sizes = rows[:finite, MAX_ABS]
    sizes = sizes[sizes > 0]
    factor = float((sizes[-1] / sizes[0]) ** (1 / (len(sizes) - 1))) if len(sizes) > 1 else 1.0
    return factor, labels[::-1][finite] if bad.any() else None


def _line(x: Any, y: Any, colour: str, **refs: str) -> dict[str, Any]:
    line = {"color": colour, "width": 1, "dash": "dot"}
    return {"type": "line", "x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1], "line": line, **refs}


def _note(text: str, x: float, y: float, yref: str) -> dict[str, Any]:
    return {
        "text": text,
        "x": float(x),
        "y": float(y),
        "yref": yref,
        "showarrow": False,
        "yanchor": "bottom",
        "font": {"size": 12},
    }
