"""Which state a cell is in, and how a state is drawn: a flat colour and, over it, marks.

Marks are thinned to about one per block of cells, so that a picture costs the same whether one
cell or every cell is bad, and a large bad region reads as a pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..palette import STATES, Palette
from .arrays import shortest, typed

Trace = dict[str, Any]
FINITE = 0  # code of an ordinary finite cell; state i of `STATES` has code i + 1
ZERO, SUBNORMAL, NEGINF, POSINF, NAN = range(1, 6)


def first_true(*cases: tuple[Any, int]) -> NDArray[np.uint8]:
    """State codes by the first condition that holds, `FINITE` where none does."""
    conditions, codes = zip(*cases, strict=True)
    return np.select(conditions, [np.uint8(code) for code in codes], np.uint8(FINITE))


def state_trace(codes: NDArray[np.uint8], place: Trace, colours: Palette) -> Trace:
    """Heatmap of flat state colours, transparent where a cell is `FINITE`."""
    bands = ("rgba(0,0,0,0)", *colours.states())
    edges = np.linspace(0, 1, len(bands) + 1)
    scale = [[edge, c] for i, c in enumerate(bands) for edge in edges[i : i + 2].tolist()]
    return {
        "type": "heatmap",
        "z": typed(codes),
        **place,
        "zmin": -0.5,
        "zmax": len(bands) - 0.5,
        "colorscale": scale,
        "showscale": False,
        "hoverinfo": "skip",
    }


def mark_traces(
    codes: NDArray[np.uint8],
    x: NDArray[np.floating[Any]],
    y: Sequence[str] | NDArray[np.floating[Any]],
    block: tuple[int, int],
    colours: Palette,
    *,
    badges: bool = False,
) -> list[Trace]:
    """Marks for each state that occurs.

    Args:
        codes: uint8 [rows, columns].
        x, y: centres of the columns and rows.
        block: rows and columns that share one mark of each state.
        badges: put a square of the state's colour behind each mark, so that a single bad column
            is seen however narrow it is.
    """
    traces = []
    for code in np.unique(codes[codes != FINITE]).tolist():
        rows, columns = thinned(codes == code, block)
        place = {
            "type": "scatter",
            "mode": "markers",
            "x": typed(shortest(x[columns])),
            "y": typed(y[rows]) if isinstance(y, np.ndarray) else [y[row] for row in rows],
            "hoverinfo": "skip",
            "showlegend": False,
        }
        if badges:
            badge = {"symbol": "square", "size": 13, "color": colours.states()[code - 1]}
            traces.append({**place, "marker": {**badge, "opacity": 1}})
        colour = colours.mark[code - 1]
        mark = {"symbol": STATES[code - 1].symbol, "size": 7, "color": colour}
        traces.append({**place, "marker": {**mark, "line": {"color": colour, "width": 1.5}}})
    return traces


def thinned(
    cells: NDArray[np.bool_], block: tuple[int, int]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of one marked cell per block that has any: its middle one."""
    rows, columns = np.nonzero(cells)
    across = -(-cells.shape[1] // block[1])
    owner = rows // block[0] * across + columns // block[1]
    order = np.argsort(owner, kind="stable")
    _, start, count = np.unique(owner[order], return_index=True, return_counts=True)
    middle = order[start + count // 2]
    return rows[middle], columns[middle]


def legend_traces(colours: Palette) -> list[Trace]:
    """A legend entry for every colour, whether it occurs or not: the legend never jumps."""
    zero, subnormal, neginf, posinf, nan = (state.glyph for state in STATES)
    names = {
        f"{zero} all zero": colours.zero,
        f"{subnormal} subnormal": colours.subnormal,
        f"{posinf}{neginf} ±Inf": colours.inf,
        f"{nan} NaN": colours.nan,
    }
    return [legend_entry(name, colour) for name, colour in names.items()]


def legend_entry(name: str, colour: str, size: int = 13) -> Trace:
    """A trace of no points that stands in the legend as a coloured square of so many pixels."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [None],
        "y": [None],
        "name": name,
        "marker": {"symbol": "square", "size": size, "color": colour},
        "hoverinfo": "skip",
    }
