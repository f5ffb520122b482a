"""History: bounded, ordered, and each cell the worst of its steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.training.health import COUNTS, FIELDS
from models.training.history import History
from models.training.program import Rows

Array = np.ndarray[Any, Any]
SIZES = np.array([6, 4])


def rows_of(health: Array, loss: Array | None = None, first: int = 0) -> Rows:
    """Rows of consecutive steps; `applied` is `raw` in reverse order of the parameters."""
    n, parameters, _ = health.shape
    return Rows(
        step=np.arange(first, first + n),
        loss=np.arange(first, first + n, dtype=float) if loss is None else loss,
        status=np.zeros(n, np.int64),
        raw=health,
        applied=health[:, ::-1],
        update_ratio=np.where(health[:, :, 0] > 0, np.nan, health[:, :, 5])[:, :parameters],
    )


def draw_health(generator: np.random.Generator, n: int, bad: float) -> Array:
    """[n, 2, FIELDS]: mostly finite, with some non-finite and some all-zero gradients."""
    health = np.zeros((n, len(SIZES), len(FIELDS)))
    health[:, :, 5] = 10.0 ** generator.integers(-5, 5, (n, len(SIZES)))
    health[:, :, 6] = 2 * health[:, :, 5]
    for field in range(3):
        chosen = generator.random((n, len(SIZES))) < bad
        health[:, :, field] = np.where(chosen, generator.integers(1, 3, chosen.shape), 0)
    dead = generator.random((n, len(SIZES))) < bad
    health[dead] = 0
    health[:, :, 3] = np.where(dead, SIZES, 0)
    return health


def worse(cell: Array, size: int) -> tuple[float, ...]:
    """The order of cells, spelt out: by non-finite entries; without any, all zero, magnitude."""
    nonfinite = cell[0] + cell[1] + cell[2]
    if nonfinite:
        return (nonfinite, 0.0, 0.0)
    return (0.0, float(cell[3] == size), cell[5])


def check(history: History, rows: Rows) -> None:
    view = history.view()
    assert len(view.first_step) <= history.columns
    assert view.first_step[0] == rows.step[0]
    assert view.last_step[-1] == rows.step[-1]
    assert np.array_equal(view.first_step[1:], view.last_step[:-1] + 1)
    fields = (*COUNTS, "max_abs", "norm")
    for column, (first, last) in enumerate(zip(view.first_step, view.last_step, strict=True)):
        span = range(first - rows.step[0], last - rows.step[0] + 1)
        for which, health in (("raw", rows.raw), ("applied", rows.applied)):
            arrays = getattr(view, which)
            for p, size in enumerate(SIZES):
                worst = max(span, key=lambda t, h=health, p=p, s=size: worse(h[t, p], s))
                shown = [getattr(arrays, field)[p, column] for field in fields]
                assert shown == health[worst, p].tolist()
                assert arrays.step[p, column] == rows.step[worst]
        losses = rows.loss[list(span)]
        bad = losses[~np.isfinite(losses)]
        np.testing.assert_equal(view.loss[column], bad[0] if len(bad) else losses[-1])
        ratios = rows.update_ratio[list(span)]
        for p in range(len(SIZES)):
            measured = ratios[:, p][~np.isnan(ratios[:, p])]
            expected = measured.max() if len(measured) else np.nan
            np.testing.assert_equal(view.update_ratio[p, column], expected)


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.02, 0.5]),
    st.sampled_from([4, 7, 16]),
)
def test_every_cell_shows_the_worst_of_its_steps(
    bursts: list[int], seed: int, bad: float, columns: int
) -> None:
    generator = np.random.default_rng(seed)
    history = History(("a", "b"), SIZES, columns=columns)
    parts: list[Rows] = []
    for n in bursts:
        loss = np.where(generator.random(n) < bad / 4, np.inf, generator.random(n))
        first = int(sum(len(part.step) for part in parts))
        parts.append(rows_of(draw_health(generator, n, bad), loss, first))
        history.add(parts[-1])
    check(history, Rows.concatenate(parts))


@given(st.lists(st.integers(1, 60), min_size=2, max_size=6), st.integers(0, 2**32 - 1))
def test_burst_lengths_do_not_matter(bursts: list[int], seed: int) -> None:
    total = sum(bursts)
    rows = rows_of(draw_health(np.random.default_rng(seed), total, 0.1))
    whole, parts = (History(("a", "b"), SIZES, columns=8) for _ in range(2))
    whole.add(rows)
    start = 0
    for n in bursts:
        parts.add(Rows(*(array[start : start + n] for array in rows)))
        start += n
    for a, b in zip(whole._cells, parts._cells, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_halted_step_that_is_tried_again_stays_one_column() -> None:
    history = History(("a", "b"), SIZES)
    rows = rows_of(draw_health(np.random.default_rng(0), 5, 0.0))
    history.add(rows)
    for _ in range(10):
        history.add(rows.last())
    check(history, rows)


def test_nothing_is_forgotten_and_little_is_kept_after_a_million_steps() -> None:
    """One bad entry of one parameter in one step among 1,000,000 × 20 is still to be seen."""
    parameters, burst, bad_step = 20, 5000, 123_456
    history = History(tuple(f"p{i}" for i in range(parameters)), np.full(parameters, 100))
    health = np.ones((burst, parameters, len(FIELDS)))
    health[:, :, :5] = 0
    for first in range(0, 1_000_000, burst):
        rows = rows_of(health, first=first)
        if first <= bad_step < first + burst:
            marked = health.copy()
            marked[bad_step - first, 7, 0] = 1
            rows = rows._replace(raw=marked)
        history.add(rows)
    view = history.view()
    assert sum(array.nbytes for array in history._cells) <= 2_000_000
    assert view.raw.step[7][view.raw.nan[7] > 0].tolist() == [bad_step]
    assert view.raw.nan.sum() == 1
    assert view.last_step[-1] == 999_999


@pytest.mark.parametrize("steps", [1, 256, 257, 10_000])
def test_the_number_of_columns_is_bounded(steps: int) -> None:
    history = History(("a", "b"), SIZES)
    history.add(rows_of(draw_health(np.random.default_rng(0), steps, 0.1)))
    columns = len(history.view().first_step)
    assert min(steps, 128) <= columns <= 256


def test_marks_are_kept_up_to_a_limit() -> None:
    history = History(("a", "b"), SIZES, marks=3)
    for step in range(5):
        history.mark(step, f"change {step}")
    assert [step for step, _ in history.view().marks] == [2, 3, 4]


def test_a_view_does_not_change_afterwards() -> None:
    history = History(("a", "b"), SIZES, columns=8)
    rows = rows_of(draw_health(np.random.default_rng(0), 20, 0.1))
    history.add(Rows(*(array[:8] for array in rows)))
    view = history.view()
    kept = [view.loss.copy(), view.raw.nan.copy(), view.update_ratio.copy()]
    history.add(Rows(*(array[8:] for array in rows)))
    for before, now in zip(kept, (view.loss, view.raw.nan, view.update_ratio), strict=True):
        np.testing.assert_array_equal(before, now)
