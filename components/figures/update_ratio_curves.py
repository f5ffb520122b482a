"""How far a step moves each parameter, against the parameter's own size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..palette import palette
from .curves import curve_layout, parameter_legend, parameter_lines

if TYPE_CHECKING:
    from models.training.history import HistoryView

# A rule of thumb in wide use: about 1e-3; much more is unstable, much less hardly learns.
HEALTHY = (1e-4, 1e-2)


def update_ratio_curves(view: HistoryView, *, dark: bool = False) -> dict[str, Any]:
    """‖update‖ / ‖weight‖, one curve a parameter (curve i is parameter i); unmeasured is a gap."""
    colours = palette(dark)
    band = {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": HEALTHY[0],
        "y1": HEALTHY[1],
        "fillcolor": colours.band,
        "line": {"width": 0},
        "layer": "below",
        "label": {
            "text": "healthy: around 10⁻³",
            "textposition": "top left",
            "font": {"size": 11, "color": colours.muted},
        },
    }
    lines = parameter_lines(view, view.update_ratio, "‖update‖ / ‖weight‖ %{y:.2~g}", colours)
    # It is measured at the last step of each burst only.
    return {
        "data": [line | {"connectgaps": True} for line in lines],
        "layout": curve_layout(
            view,
            "‖update‖ / ‖weight‖",
            log=True,
            railed=False,
            colours=colours,
            shapes=[band],
            **parameter_legend(view.parameters),
        ),
    }
