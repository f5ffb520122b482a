"""Norm of each parameter's gradient over the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..palette import palette
from .arrays import smallest
from .curves import curve_layout, parameter_legend, parameter_lines, rail
from .states import NAN, POSINF, first_true

if TYPE_CHECKING:
    from models.training.history import HealthArrays, HistoryView

HOVER = (
    "steps %{customdata[0]:,d} to %{customdata[1]:,d}"
    "<br>NaN in %{customdata[2]}, Inf in %{customdata[3]} of %{customdata[4]} gradients"
)


def norm_curves(
    view: HistoryView, which: Literal["raw", "applied"] = "raw", *, dark: bool = False
) -> dict[str, Any]:
    """Norm of the finite entries, one curve a parameter (curve i is parameter i).

    A cell with NaN or Inf is a gap in its curve, and counted in the rail above. A norm of 0 has no
    place on a logarithmic axis and is a gap too.
    """
    colours = palette(dark)
    health: HealthArrays = getattr(view, which)
    nan, inf = health.nan > 0, health.posinf + health.neginf > 0
    norms = np.where(nan | inf, np.nan, health.norm)
    lines = parameter_lines(view, norms, "norm %{y:.3~g}", colours)
    codes = first_true((nan.any(axis=0), NAN), (inf.any(axis=0), POSINF))
    counts = (nan.sum(axis=0), inf.sum(axis=0), np.full(len(view.first_step), len(nan)))
    details = [smallest(row) for row in (view.first_step, view.last_step, *counts)]
    strip = rail(view, codes, HOVER, details, colours)
    return {
        "data": [*lines, *strip],
        "layout": curve_layout(
            view,
            "gradient norm",
            log=True,
            railed=bool(strip),
            colours=colours,
            **parameter_legend(view.parameters),
        ),
    }
