"""What the layouts of all figures have in common."""

from __future__ import annotations

from typing import Any

Layout = dict[str, Any]
TICKS = 9


def layout(height: int, narrow: Layout | None = None, **parts: Any) -> Layout:
    """A layout with an x axis of steps, a legend above and close margins.

    The margin above is as high as Plotly's two buttons, which would cover what is below them.

    Args:
        height: in pixels.
        narrow: what is different where the figure is less than 600 px wide; `plotly_view`
            merges it in.
        parts: added to the layout, replacing what has the same name.
    """
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 32, "b": 8},
        "xaxis": step_axis(),
        "yaxis": {"automargin": True},
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.01,
            "yanchor": "bottom",
            "font": {"size": 12},
            "itemclick": False,
            "itemdoubleclick": False,
        },
        "hovermode": "closest",
        "meta": {"narrow": narrow or {}},
        **parts,
    }


def step_axis(count: int = 0, **parts: Any) -> Layout:
    """An axis of `count` whole numbers, by default the x axis of steps."""
    return {
        "title": {"text": "step", "standoff": 6},
        "automargin": True,
        "tickformat": ",~f",
        "showgrid": False,
        "zeroline": False,
        **({"dtick": 1} if 0 < count < TICKS else {"nticks": TICKS}),
        **parts,
    }
