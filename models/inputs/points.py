"""Points x, y to be fitted, from a CSV file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from .text import FIELD, LARGEST, Rows, read_rows, shown

MIN_POINTS = 8
# Attention over the samples compares every point with every other one.
MAX_POINTS = 2000
EXPECTED = "a CSV of two columns, x and y"


@dataclass(frozen=True, eq=False)
class Points:
    """Samples of a function: x and y, float64 [points], in ascending order of x."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]


def read_points(content: bytes) -> Points:
    """Points from the bytes of a CSV file with columns x and y; a header line is optional.

    Delimiters are comma, semicolon (then with decimal commas) or tab. Points may share an x.
    Raises BadInput(field="data") when the file cannot be read, a line has not two cells, a cell is
    not a finite number, all x are equal, or there are not 8 to 2000 points.
    """
    rows = read_rows(content, EXPECTED, MAX_POINTS)
    _check_columns(rows)
    has_header = all(rows.number(cell) is None for cell in rows.cells[0])
    points = [_point(rows, index) for index in range(int(has_header), len(rows.cells))]
    if not MIN_POINTS <= len(points) <= MAX_POINTS:
        raise BadInput(
            f"The file holds {len(points)} {'point' if len(points) == 1 else 'points'}; "
            f"bring between {MIN_POINTS} and {MAX_POINTS}.",
            FIELD,
        )
    x, y = np.array(points, dtype=np.float64).T
    if x.min() == x.max():
        raise BadInput(f"Every x is {x[0]:g}; bring points with different x.", FIELD)
    order = np.argsort(x, kind="stable")
    return Points(x[order], y[order])


def _check_columns(rows: Rows) -> None:
    for cells, line in zip(rows.cells, rows.lines, strict=True):
        if len(cells) != 2:
            raise BadInput(
                f"Line {line} has {len(cells)} {'column' if len(cells) == 1 else 'columns'}; "
                "there must be two, x and y, separated by a comma, semicolon or tab.",
                FIELD,
            )


def _point(rows: Rows, index: int) -> list[float]:
    values = []
    for name, cell in zip("xy", rows.cells[index], strict=True):
        value = rows.number(cell)
        if value is None or not abs(value) <= LARGEST:
            content = shown(cell) if cell else "an empty cell"
            raise BadInput(
                f"Line {rows.lines[index]}, column {name}: {content} is not a finite number "
                f"within ±{LARGEST:.1e}; write a number or remove the line.",
                FIELD,
            )
        values.append(value)
    return values
