"""A table of numbers with a two-class label: read, split and standardised."""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass, replace
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from .text import FIELD, LARGEST, Rows, listed, read_rows, shown

LABEL_NAMES = ("label", "target", "class", "y", "outcome", "diagnosis")
MIN_ROWS = 20
MAX_ROWS = 200_000
MISSING = {"", "nan", "na", "n/a", "null", "none", "?"}
EXPECTED = "a CSV with a header line, columns of numbers and a label column"


@dataclass(frozen=True, eq=False)
class Table:
    """Examples for a two-class problem.

    features: float64 [rows, columns], finite. labels: int64 [rows], each 0 or 1.
    feature_names: one a column. class_names: what label 0 and label 1 are called in the data.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    feature_names: tuple[str, ...]
    label_name: str
    class_names: tuple[str, str]


def read_table(content: bytes, *, label: str | None = None) -> Table:
    """Table from the bytes of a CSV file with a header line.

    Delimiters are comma, semicolon (then with decimal commas) or tab. The label column is the one
    named `label`; else one called label, target, class, y, outcome or diagnosis in any case; else
    the last column if it has exactly two values. Of two numbers the larger becomes label 1, of two
    words the rarer one (the second in alphabetical order if both are equally frequent).

    Raises BadInput(field="data", or "label_column" if there is no such column), naming line
    and column, for whatever cannot be trained on.
    """
    rows = read_rows(content, EXPECTED, MAX_ROWS)
    names = _header(rows)
    for cells, line in zip(rows.cells, rows.lines, strict=True):
        if len(cells) != len(names):
            raise BadInput(
                f"Line {line} has {len(cells)} cells, but the header has {len(names)}; "
                "every line must have the same number.",
                FIELD,
            )
    rows = replace(rows, cells=rows.cells[1:], lines=rows.lines[1:])
    if len(rows.cells) < MIN_ROWS:
        raise BadInput(
            f"The table has {len(rows.cells)} {'row' if len(rows.cells) == 1 else 'rows'} below "
            f"its header; bring at least {MIN_ROWS}.",
            FIELD,
        )
    column = _label_column(rows, names, label)
    if len(names) == 1:
        raise BadInput(
            f"The only column is the label {shown(names[0])}; add at least one column of numbers.",
            FIELD,
        )
    labels, class_names = _labels(rows, names, column)
    return Table(
        _features(rows, names, column),
        labels,
        tuple(name for index, name in enumerate(names) if index != column),
        names[column],
        class_names,
    )


@functools.cache
def breast_cancer() -> Table:
    """Breast cancer in Wisconsin: 569 rows, 30 features of cell nuclei, label 1 is malignant (212).

    Wolberg, Mangasarian, Street and Street (1993), UCI Machine Learning Repository,
    https://doi.org/10.24432/C5DW2B, CC BY 4.0; the same numbers as in scikit-learn.
    """
    return read_table(resources.files(__package__).joinpath("breast_cancer.csv").read_bytes())


def train_test_split(
    table: Table, seed: int, held_out: float = 0.25
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row indices for training and for testing, int64, ascending, together every row once.

    About the share `held_out` (rounded up to whole rows) is for testing, with both classes in
    proportion and at least one row of each on both sides. The same seed gives the same split.
    """
    counts = np.bincount(table.labels, minlength=2)
    exact = math.ceil(held_out * len(table.labels)) * counts / len(table.labels)
    sizes = np.floor(exact).astype(np.int64)
    if sizes.sum() < round(exact.sum()):
        sizes[np.argmax(exact - sizes)] += 1
    sizes = np.clip(sizes, 1, counts - 1)
    generator = np.random.default_rng(seed)
    is_test = np.zeros(len(table.labels), dtype=bool)
    for value, size in enumerate(sizes):
        is_test[generator.permutation(np.flatnonzero(table.labels == value))[:size]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def standardise(features: NDArray[np.float64], train: NDArray[np.int64]) -> NDArray[np.float64]:
    """Every column less its mean, over its standard deviation, both from the rows in `train`.

    features: float64 [rows, columns], and so is the result. A column that is constant over the
    training rows becomes 0 in all rows.
    """
    training = features[train]
    mean, std = training.mean(axis=0), training.std(axis=0)
    # The mean of equal numbers may differ from them in the last bit, so ask the numbers.
    varies = (np.ptp(training, axis=0) > 0) & (std > np.finfo(np.float32).tiny)
    return np.where(varies, (features - mean) / np.where(varies, std, 1.0), 0.0)


def _header(rows: Rows) -> list[str]:
    names = [name or f"column {index}" for index, name in enumerate(rows.cells[0], 1)]
    if all(rows.number(name) is not None for name in names):
        raise BadInput(
            f"Line {rows.lines[0]} holds numbers where the column names should be; "
            "put a header line above the data.",
            FIELD,
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise BadInput(
            f"Several columns are called {listed(twice)}; give each column its own name.", FIELD
        )
    if len(rows.cells) == 1:
        raise BadInput(
            f"The file holds only a header line; bring at least {MIN_ROWS} rows below it.", FIELD
        )
    return names


def _label_column(rows: Rows, names: list[str], label: str | None) -> int:
    if label is not None:
        if label.strip() in names:
            return names.index(label.strip())
        raise BadInput(
            f"There is no column {shown(label)}; the columns are {listed(names)}.", "label_column"
        )
    lower = [name.lower() for name in names]
    for name in LABEL_NAMES:
        if name in lower:
            return lower.index(name)
    values = len({row[-1] for row in rows.cells})
    if values != 2:
        raise BadInput(
            f"There is no label column: call it {', '.join(LABEL_NAMES[:-1])} or "
            f"{LABEL_NAMES[-1]}, or put a column with two values last (the last one, "
            f"{shown(names[-1])}, has {values}).",
            FIELD,
        )
    return len(names) - 1


def _labels(rows: Rows, names: list[str], column: int) -> tuple[NDArray[np.int64], tuple[str, str]]:
    cells = [row[column] for row in rows.cells]
    missing = [i for i, cell in enumerate(cells) if cell.lower() in {"", "nan"}]
    if missing:
        raise _unusable_cells(
            len(missing), rows.lines[missing[0]], names[column], cells[missing[0]]
        )
    numbers = [rows.number(cell) for cell in cells]
    values: list[str] = (
        cells if None in numbers else [f"{number:.12g}" for number in numbers if number is not None]
    )
    counts = Counter(values)
    if len(counts) != 2:
        what = "only one class" if len(counts) == 1 else f"{len(counts)} classes"
        raise BadInput(
            f"The label column {shown(names[column])} has {what} ({listed(sorted(counts), 5)}); "
            "it must have exactly two.",
            FIELD,
        )
    zero, one = (
        sorted(counts, key=lambda value: (-counts[value], value))
        if None in numbers
        else sorted(counts, key=float)
    )
    rarer = min(counts, key=lambda value: counts[value])
    if counts[rarer] < 2:
        raise BadInput(
            f"Only one row has the label {shown(rarer)}; bring at least two of each class, "
            "because one is held out.",
            FIELD,
        )
    return np.array([value == one for value in values], dtype=np.int64), (zero, one)


def _features(rows: Rows, names: list[str], label_column: int) -> NDArray[np.float64]:
    columns = [index for index in range(len(names)) if index != label_column]
    features = np.empty((len(rows.cells), len(columns)))
    for i, cells in enumerate(rows.cells):
        for j, column in enumerate(columns):
            value = rows.number(cells[column])
            if value is None and cells[column].lower() not in MISSING:
                raise BadInput(
                    f"Line {rows.lines[i]}, column {shown(names[column])} holds the text "
                    f"{shown(cells[column])}; every column but the label "
                    f"{shown(names[label_column])} must hold numbers.",
                    FIELD,
                )
            features[i, j] = math.nan if value is None else value
    unusable = np.argwhere(~(np.abs(features) <= LARGEST))
    if len(unusable):
        i, column = unusable[0][0], columns[unusable[0][1]]
        raise _unusable_cells(len(unusable), rows.lines[i], names[column], rows.cells[i][column])
    return features


def _unusable_cells(count: int, line: int, name: str, cell: str) -> BadInput:
    content = shown(cell) if cell else "empty"
    where = f"line {line}, column {shown(name)} ({content})"
    what = f"One cell is empty or not finite: {where}"
    if count > 1:
        what = f"{count} cells are empty or not finite, the first in {where}"
    return BadInput(
        f"{what}; write numbers within ±{LARGEST:.1e} or remove those rows.",
        FIELD,
    )
