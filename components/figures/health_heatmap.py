"""Parameters × steps: where each gradient is finite, how large, and where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..palette import palette
from .arrays import Z, planes, shortest, smallest, tenths, typed
from .curves import step_edges, view_axis
from .layout import layout
from .magnitudes import NARROW, colour_axis
from .states import (
    FINITE,
    NAN,
    NEGINF,
    POSINF,
    SUBNORMAL,
    ZERO,
    first_true,
    legend_traces,
    mark_traces,
    state_trace,
)

if TYPE_CHECKING:
    from models.training.history import HealthArrays, HistoryView

MARKS_ACROSS = 28
HOVER = (
    "<b>%{y}</b>  steps %{customdata[8]:,d} to %{customdata[9]:,d}, worst at %{customdata[10]:,d}"
    "<br>NaN %{customdata[0]:,d}, +Inf %{customdata[1]:,d}, −Inf %{customdata[2]:,d}"
    " of %{customdata[5]:,d}"
    "<br>zero %{customdata[3]:,d}, subnormal %{customdata[4]:,d}"
    "<br>largest finite about %{customdata[6]:.1~g}, norm about %{customdata[7]:.1~g}"
    "<extra></extra>"
)


def health_heatmap(
    view: HistoryView, which: Literal["raw", "applied"] = "raw", *, dark: bool = False
) -> dict[str, Any]:
    """Heatmap of log10 of each gradient's largest finite magnitude over the steps.

    A cell with any NaN, else any Inf, and a cell that is all zero or has nothing above the
    subnormals, has a flat colour and a mark instead. Curve 0 is the one that is clicked: its
    point is (parameter, column), its y the parameter's name.

    Args:
        which: gradients as computed or as applied, after clipping.
    """
    colours = palette(dark)
    health: HealthArrays = getattr(view, which)
    names = list(view.parameters)
    codes = health_codes(health, view.sizes)
    largest = tenths(health.max_abs)
    columns = len(view.first_step)
    edges = step_edges(view)
    place = {"x": typed(shortest(edges)), "y": names, "ygap": 1}
    magnitude = {
        "type": "heatmap",
        "z": typed(largest),
        **place,
        "coloraxis": "coloraxis",
        "customdata": _details(view, health),
        "hovertemplate": HOVER,
    }
    centres = (edges[1:] + edges[:-1]) / 2
    block = (1, max(1, round(columns / MARKS_ACROSS)))
    return {
        "data": [
            magnitude,
            state_trace(codes, place, colours),
            *mark_traces(codes, centres, names, block, colours, badges=True),
            *legend_traces(colours),
        ]
        if columns
        else legend_traces(colours),
        "layout": layout(
            height=96 + 20 * max(6, len(names)),
            xaxis=view_axis(view),
            yaxis={
                "type": "category",
                "categoryarray": names,
                "range": [len(names) - 0.5, -0.5],  # the first parameter on top
                "automargin": True,
                "showgrid": False,
                "ticks": "",
                "dtick": 1,
            },
            coloraxis=colour_axis(largest, codes == FINITE, "largest |gradient|", colours),
            narrow=NARROW,
        ),
    }


def health_codes(health: HealthArrays, sizes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """State codes [P, C]: the worst that a cell holds."""
    size = sizes[:, None]
    return first_true(
        (health.nan > 0, NAN),
        (health.posinf > 0, POSINF),
        (health.neginf > 0, NEGINF),
        (health.zero == size, ZERO),
        (health.zero + health.subnormal == size, SUBNORMAL),
    )


def _details(view: HistoryView, health: HealthArrays) -> dict[str, Any]:
    """What the hover text says, in the order of its indices."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = tenths(health.norm / health.max_abs)
    counts = (health.nan, health.posinf, health.neginf, health.zero, health.subnormal)
    return planes(
        *(typed(smallest(count)) for count in counts),
        typed(smallest(view.sizes[:, None])),
        {**Z, "tenths": True},
        {**typed(smallest(spread)), "tenths": True, "times": 6},
        typed(smallest(view.first_step[None])),
        {**typed(smallest((view.last_step - view.first_step)[None])), "plus": 8},
        {**typed(smallest(health.step - view.first_step)), "plus": 8},
    )
