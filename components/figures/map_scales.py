"""The two colour scales of a map: how well it went, and how soon it broke."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..palette import Palette

LOG_FROM = 50.0  # ratio of the largest to the smallest loss from which its scale is logarithmic


def finite_scale(
    values: NDArray[np.float64], view: str, metric: str, colours: Palette
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """The values as they are coloured, and Plotly's axis for them."""
    some = values[np.isfinite(values)]
    name = metric if view == "metric" else "final loss"
    log = bool(
        view != "metric" and some.size and some.min() > 0 and some.max() >= LOG_FROM * some.min()
    )
    with np.errstate(all="ignore"):
        scaled = np.log10(values) if log else values
    used = scaled[np.isfinite(scaled)]
    low, high = (float(used.min()), float(used.max())) if used.size else (0.0, 1.0)
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-300):
        low, high = low - 0.5, high + 0.5
    ticks = np.linspace(low, high, 4)
    texts = [f"{10**tick if log else tick:.3g}" for tick in ticks]
    axis = scale_axis(colours.finite, (low, high), f"finite: {name}", ticks, texts)
    axis["colorbar"] |= {"y": 1, "yanchor": "top"}
    return scaled, axis


def step_scale(steps: int, seeds: int, view: str, colours: Palette) -> dict[str, Any]:
    """For log10(step + 1), or for how many seeds broke."""
    if view == "seeds":
        ticks = np.arange(1, seeds + 1, dtype=np.float64)
        texts = [f"{int(tick)}" for tick in ticks]
        low, high, title = 1.0, float(max(seeds, 2)), f"broken seeds of {seeds}"
    else:
        marked = [0, *(10**d for d in range(math.floor(math.log10(steps)) + 1))]
        ticks = np.log10(np.array(marked) + 1.0)
        texts = [f"{step:,}" for step in marked]
        low, high, title = 0.0, math.log10(steps + 1), "broken: at step"
    axis = scale_axis(colours.broken, (low, high), title, ticks, texts)
    axis["colorbar"] |= {"y": 0, "yanchor": "bottom"}
    return axis


def scale_axis(
    colours: tuple[str, ...],
    ends: tuple[float, float],
    title: str,
    ticks: NDArray[np.float64],
    texts: list[str],
) -> dict[str, Any]:
    last = len(colours) - 1
    return {
        "cmin": ends[0],
        "cmax": ends[1],
        "colorscale": [[i / last, colour] for i, colour in enumerate(colours)],
        "colorbar": {
            "title": {"text": title, "side": "right", "font": {"size": 12}},
            "tickvals": ticks.tolist(),
            "ticktext": texts,
            "thickness": 12,
            "outlinewidth": 0,
            "len": 0.48,
            "xpad": 8,
            "ypad": 0,
        },
    }
