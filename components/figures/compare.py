"""Several runs on one clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..palette import Palette, palette
from .arrays import rounded, smallest, typed
from .layout import layout

if TYPE_CHECKING:
    from models.training.history import HistoryView

SAME = 1e-6  # relative difference of two losses up to which two runs are together


def alike(heatmaps: Sequence[dict[str, Any]], last_step: int) -> None:
    """Give health heatmaps one colour scale and one axis of steps, up to `last_step`."""
    axes = [figure["layout"]["coloraxis"] for figure in heatmaps]
    low, high = min(a["cmin"] for a in axes), max(a["cmax"] for a in axes)
    widest = max((a["colorbar"] for a in axes), key=lambda bar: np.ptp(bar["tickvals"]))
    for figure, axis in zip(heatmaps, axes, strict=True):
        axis.update(cmin=low, cmax=high)
        axis["colorbar"].update(tickvals=widest["tickvals"], ticktext=widest["ticktext"])
        figure["layout"]["xaxis"]["range"] = [-0.5, last_step + 0.5]


def losses(runs: Mapping[str, HistoryView], *, dark: bool = False) -> dict[str, Any]:
    """The loss of each run; a run's last point is marked where it broke."""
    return _curves(runs, "loss", [view.loss for view in runs.values()], palette(dark))


def total_norms(runs: Mapping[str, HistoryView], *, dark: bool = False) -> dict[str, Any]:
    """Norm of all gradients together, after clipping; not finite is a gap."""
    values = []
    for view in runs.values():
        finite = view.applied.nonfinite.sum(axis=0) == 0
        norms = view.applied.norm
        largest = norms.max(axis=0, initial=0.0)
        scale = np.where(largest > 0, largest, 1.0)
        total = scale * np.sqrt(np.sum((norms / scale) ** 2, axis=0))
        values.append(np.where(finite, total, np.nan))
    return _curves(runs, "norm of all gradients", values, palette(dark))


def parting(one: HistoryView, other: HistoryView) -> int | None:
    """The first step, of those both have a column for, at which two losses differ, or else at
    which one run ends and the other goes on; None if they never part."""
    _, i, j = np.intersect1d(one.last_step, other.last_step, return_indices=True)
    a, b = one.loss[i], other.loss[j]
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= SAME * np.maximum(np.abs(a), np.abs(b))
    apart = ~(near | (~np.isfinite(a) & ~np.isfinite(b)))
    if apart.any():
        return int(one.last_step[i][np.argmax(apart)])
    ends = int(one.last_step[-1]), int(other.last_step[-1])
    return None if ends[0] == ends[1] else min(ends)


def _curves(
    runs: Mapping[str, HistoryView], title: str, values: list[NDArray[Any]], colours: Palette
) -> dict[str, Any]:
    traces = []
    dashes = ("solid", "dash", "dot", "dashdot")
    for i, (name, view) in enumerate(runs.items()):
        y = np.where(np.isfinite(values[i]) & (values[i] > 0), values[i], np.nan)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if len(y) == 1 else "lines",
                "x": typed(smallest(view.last_step)),
                "y": typed(rounded(y)),
                "name": name,
                "line": {
                    "color": colours.series[i % len(colours.series)],
                    "dash": dashes[i % len(dashes)],
                    "width": 2,
                },
                "hovertemplate": f"{name}<br>step %{{x:,d}}<br>{title} %{{y:.4~g}}<extra></extra>",
            }
        )
    axis = {
        "title": {"text": title},
        "type": "log",
        "automargin": True,
        "exponentformat": "power",
        "nticks": 5,
    }
    return {"data": traces, "layout": layout(300, yaxis=axis)}
