"""The loss over the steps; a loss that is not finite is shown, not dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..palette import palette
from .arrays import rounded, smallest, typed
from .curves import curve_layout, lone_points, rail
from .states import NAN, NEGINF, POSINF, first_true

if TYPE_CHECKING:
    from models.training.history import HistoryView

LOG_FROM = 50.0  # ratio of the largest to the smallest loss from which the axis is logarithmic


def loss_curve(view: HistoryView, *, dark: bool = False) -> dict[str, Any]:
    """Loss of each column, on a logarithmic axis if it is positive and falls far enough."""
    colours = palette(dark)
    loss = view.loss
    finite = loss[np.isfinite(loss)]
    log = bool(finite.size and finite.min() > 0 and finite.max() >= LOG_FROM * finite.min())
    drawn = np.where(np.isfinite(loss), loss, np.nan)
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": typed(smallest(view.last_step)),
        "y": typed(rounded(drawn)),
        "name": "loss",
        "line": {"color": colours.series[0], "width": 2},
        "hovertemplate": "step %{x:,d}<br>loss %{y:.4~g}<extra></extra>",
        "showlegend": False,
    }
    codes = first_true(
        (np.isnan(loss), NAN), (np.isposinf(loss), POSINF), (np.isneginf(loss), NEGINF)
    )
    details = (view.first_step, view.last_step)
    strip = rail(
        view,
        codes,
        "steps %{customdata[0]:,d} to %{customdata[1]:,d}<br>loss %{customdata[2]}",
        [*map(smallest, details), loss.astype(np.float32)],
        colours,
    )
    return {
        "data": [line, *lone_points(view, drawn[None], colours), *strip],
        "layout": curve_layout(view, "loss", log=log, railed=bool(strip), colours=colours),
    }
