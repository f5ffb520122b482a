"""The entries of one array: which are NaN, Inf, zero, subnormal, and how large the others are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..palette import palette
from .arrays import planes, rounded, shortest, smallest, tenths, typed
from .layout import layout, step_axis
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

LARGEST = 128  # cells a side; beyond that a cell is a block and shows its worst entry
MARKS_ACROSS = 24
HOVER = "[%{customdata[0]:d}, %{customdata[1]:d}]<br>%{customdata[2]:.3~g}<extra></extra>"


def element_heatmap(values: ArrayLike, name: str, *, dark: bool = False) -> dict[str, Any]:
    """Heatmap of the entries of a gradient (or of any real array).

    Args:
        values: of any rank. A vector is one row; beyond rank 2 all axes but the last make the
            rows. Larger than 128 × 128, each cell is a block of entries and shows its worst: NaN
            before Inf before the largest magnitude.
        name: title of the figure.
    """
    colours = palette(dark)
    array = np.asarray(values)
    tiny = np.finfo(array.dtype if array.dtype.kind == "f" else np.float32).tiny
    matrix = array.astype(np.float64).reshape(-1, array.shape[-1] if array.ndim else 1)
    if not matrix.size:
        return {"data": [], "layout": layout(120)}
    height, width = (-(-n // LARGEST) for n in matrix.shape)
    rows, columns = _worst_entries(matrix, height, width)
    shown = matrix[rows, columns]
    size = np.abs(shown)
    codes = first_true(
        (np.isnan(shown), NAN),
        (np.isposinf(shown), POSINF),
        (np.isneginf(shown), NEGINF),
        (shown == 0, ZERO),
        (size < tiny, SUBNORMAL),
    )
    down = np.arange(len(rows)) * height + (height - 1) / 2
    across = np.arange(columns.shape[1]) * width + (width - 1) / 2
    place = {
        "x": typed(shortest(across)),
        "y": typed(shortest(down)),
        "xgap": int(len(across) <= LARGEST // 2),
        "ygap": int(len(down) <= LARGEST // 2),
    }
    magnitude = tenths(size)
    cells = {
        "type": "heatmap",
        "z": typed(magnitude),
        **place,
        "coloraxis": "coloraxis",
        "customdata": planes(
            typed(smallest(rows)), typed(smallest(columns)), typed(rounded(shown))
        ),
        "hovertemplate": HOVER,
    }
    block = (-(-len(down) // MARKS_ACROSS), -(-len(across) // MARKS_ACROSS))
    return {
        "data": [
            cells,
            state_trace(codes, place, colours),
            *mark_traces(codes, across, down, block, colours),
            *legend_traces(colours),
        ],
        "layout": layout(
            height=min(430, 170 + 8 * len(down)),
            xaxis=step_axis(matrix.shape[1], title={"text": f"{name}, column", "standoff": 6}),
            yaxis=step_axis(
                len(matrix),
                title={"text": "row", "standoff": 6},
                autorange="reversed",
                visible=len(down) > 1,
            ),
            coloraxis=colour_axis(magnitude, codes == FINITE, "|value|", colours),
            narrow=NARROW,
        ),
    }


def _worst_entries(
    matrix: NDArray[np.float64], height: int, width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of the worst entry of each block, both [blocks down, blocks across]."""
    score = np.abs(matrix)
    score[np.isinf(matrix)] = np.finfo(np.float64).max
    score[np.isnan(matrix)] = np.inf
    pad = [(0, -matrix.shape[0] % height), (0, -matrix.shape[1] % width)]
    padded = np.pad(score, pad, constant_values=-1.0)
    down, across = padded.shape[0] // height, padded.shape[1] // width
    blocks = padded.reshape(down, height, across, width).swapaxes(1, 2).reshape(down, across, -1)
    row, column = np.divmod(blocks.argmax(axis=2), width)
    return np.arange(down)[:, None] * height + row, np.arange(across) * width + column
