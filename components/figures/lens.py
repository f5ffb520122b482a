"""Numbers lens: where the dtype's numbers end, and where the present gradients stand among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.training.headroom import RANGES

from ..palette import palette
from .layout import layout


def range_figure(dtype: str, largest: float, name: str, *, dark: bool = False) -> dict[str, Any]:
    """The magnitudes a dtype can hold on a line of powers of ten; `largest` is marked on it.

    Args:
        largest: the largest finite gradient at present, of parameter `name`; 0 if there is none.
    """
    colours = palette(dark)
    subnormal, normal, limit = (float(np.log10(x)) for x in RANGES[dtype])
    bars = [
        _bar(dtype, "subnormal", subnormal, normal, colours.subnormal),
        _bar(dtype, "normal", normal, limit, colours.finite[len(colours.finite) // 2]),
    ]
    notes = []
    if largest > 0:
        place = float(np.log10(largest))
        bars.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [place],
                "y": [dtype],
                "name": "largest gradient",
                "marker": {"symbol": "diamond", "size": 14, "color": colours.inf,
                           "line": {"color": colours.muted, "width": 1}},
                "hovertemplate": f"{name}: 10^{place:.2f}<extra></extra>",
            }
        )  # fmt: skip
        text = f"{name}: {largest:.2g}, {limit - place:.1f} powers of ten to overflow"
        notes = [{"text": text, "x": place, "y": 1, "yref": "paper", "showarrow": False,
                  "yanchor": "bottom", "font": {"size": 12}}]  # fmt: skip
    return {
        "data": bars,
        "layout": layout(
            150,
            barmode="overlay",
            bargap=0.4,
            xaxis={"title": {"text": "log10 of magnitude", "standoff": 6}, "automargin": True},
            yaxis={"automargin": True, "fixedrange": True},
            legend={"orientation": "h", "y": -0.6, "yanchor": "top"},
            annotations=notes,
        ),
    }


def _bar(dtype: str, name: str, low: float, high: float, colour: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "x": [high - low],
        "base": [low],
        "y": [dtype],
        "name": name,
        "marker": {"color": colour},
        "hovertemplate": f"{name}: 10^{low:.1f} to 10^{high:.1f}<extra></extra>",
    }
