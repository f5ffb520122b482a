"""Numbers lens: where the dtype's numbers end, and where the present gradients stand among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..palette import palette
from .layout import layout

# Smallest subnormal, smallest normal and largest number.
RANGES = {
    "float64": (4.9406564584124654e-324, 2.2250738585072014e-308, 1.7976931348623157e308),
    "float32": (1.401298464324817e-45, 1.1754943508222875e-38, 3.4028234663852886e38),
    "float16": (5.960464477539063e-08, 6.103515625e-05, 65504.0),
    "bfloat16": (9.183549615799121e-41, 1.1754943508222875e-38, 3.3895313892515355e38),
}


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
