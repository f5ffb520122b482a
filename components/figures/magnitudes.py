"""The blue scale of finite magnitudes, shared by the heatmaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..palette import Palette

DECADES = 5  # the scale begins and ends at a multiple, so it stands still while data arrive
NARROW = {"coloraxis": {"colorbar": {"title": {"text": ""}, "xpad": 2}}}
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def colour_axis(
    tenths: NDArray[np.int16], shown: NDArray[np.bool_], title: str, colours: Palette
) -> dict[str, Any]:
    """Plotly's `coloraxis` for the tenths of log10 that are shown, with decades as ticks."""
    values = tenths[shown]
    step = 10 * DECADES
    low = int(values.min() // step) * step if values.size else -step
    high = max(-int(-values.max() // step) * step if values.size else 0, low + step)
    every = 10 * max(1, round((high - low) / 60)) if high - low <= step else step
    every *= max(1, round((high - low) / (6 * every)))
    ticks = list(range(low, high + 1, every))
    last = len(colours.finite) - 1
    return {
        "cmin": low,
        "cmax": high,
        "colorscale": [[i / last, colour] for i, colour in enumerate(colours.finite)],
        "colorbar": {
            "title": {"text": title, "side": "right", "font": {"size": 12}},
            "tickvals": ticks,
            "ticktext": [power(tick // 10) for tick in ticks],
            "thickness": 12,
            "outlinewidth": 0,
            "len": 1,
            "xpad": 8,
            "ypad": 0,
        },
    }


def power(exponent: int) -> str:
    """10 with a superscript: `power(-12)` is 10⁻¹²."""
    return f"10{str(exponent).translate(SUPERSCRIPT)}"
