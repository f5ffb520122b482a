"""A map's arrays and tables: what a cell says when some of its runs have ended."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.sweeps.grid import BROKEN, FAILED, FINITE, UNKNOWN, along, grid, nearest
from models.sweeps.plan import Sweep, Task, levels
from models.sweeps.results import RunResult
from models.sweeps.running import Cell, SweepView
from models.sweeps.table import cell_columns

MakeSweep = Callable[..., Sweep]


def view(*results: RunResult, survived: dict[Task, int] | None = None) -> SweepView:
    by_task = {result.task: result for result in results}
    return SweepView("running", "", by_task, survived or {}, 0, 0.0, 0.0, None)


def broken(task: Task, step: int, mechanism: str = "log-of-zero") -> RunResult:
    return RunResult(task, step, math.nan, 0.5, ("W", "b"), mechanism)


def finite(task: Task, loss: float, metric: float = 0.9) -> RunResult:
    return RunResult(task, None, loss, metric)


@pytest.fixture
def sweep(make_sweep: MakeSweep) -> Sweep:
    return make_sweep(
        "balanced_loss", "epsilon=1e-12:1e-2:log:4", "learning_rate=1e-2:1:3", seeds=2
    )


def test_a_cell_is_broken_where_any_seed_broke_and_tells_of_the_earliest(sweep: Sweep) -> None:
    one, two, three, four = (Task((0, 0), 0), Task((0, 0), 1), Task((3, 2), 0), Task((1, 1), 0))
    drawn = grid(
        sweep,
        view(
            broken(two, 7, "late"),
            broken(one, 3, "early"),
            finite(three, 0.25),
            RunResult(four, failed="lost"),
            survived={Task((2, 2), 0): 11},
        ),
    )
    assert drawn.state.shape == (4, 3)
    assert drawn.state[0, 0] == BROKEN
    assert drawn.state[3, 2] == FINITE
    assert drawn.state[1, 1] == FAILED
    assert (drawn.state == UNKNOWN).sum() == 9
    assert drawn.broken[0, 0] == drawn.ended[0, 0] == 2
    assert drawn.first_bad_step[0, 0] == 3
    assert drawn.mechanisms[drawn.mechanism[0, 0]] == "early"
    assert drawn.parameter_sets == (("W", "b"),)
    assert np.isnan(drawn.loss[0, 0])
    assert drawn.loss[3, 2] == 0.25
    assert drawn.survived[2, 2] == 11


def test_loss_is_the_mean_of_the_seeds_that_stayed_finite(sweep: Sweep) -> None:
    tasks = Task((1, 0), 0), Task((1, 0), 1)
    drawn = grid(sweep, view(finite(tasks[0], 1.0, 0.5), finite(tasks[1], 3.0, 1.0)))
    assert drawn.loss[1, 0] == 2.0
    assert drawn.metric[1, 0] == 0.75
    half = grid(sweep, view(finite(tasks[0], 1.0), broken(tasks[1], 5)))
    assert half.state[1, 0] == BROKEN
    assert half.loss[1, 0] == 1.0


@given(st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_once_the_coarse_map_is_known_every_cell_has_a_near_source(shape: tuple[int, int]) -> None:
    coarse = next(iter(levels(shape)))
    known = np.zeros(shape, bool)
    known[tuple(np.array(coarse).T)] = True
    source = nearest(known)
    assert (source >= 0).all()
    assert known[source[..., 0], source[..., 1]].all()
    own = np.stack(np.indices(shape), axis=-1)
    steps = np.diff(sorted({i for i, _ in coarse}))
    stride = int(max(steps, default=1))
    assert (np.abs(source - own)[..., 0] <= stride).all()
    assert (source[known] == own[known]).all()


def test_a_slice_of_three_axes_and_a_single_axis_are_flat(make_sweep: MakeSweep) -> None:
    cube = make_sweep(
        "balanced_loss",
        "epsilon=1e-12:1e-2:log:2",
        "learning_rate=1e-2:1:2",
        "dtype=float32,float64",
    )
    drawn = grid(cube, view(broken(Task((0, 1, 1), 0), 4), finite(Task((0, 1, 0), 0), 1.0)))
    assert drawn.flat(1).state.tolist() == [[UNKNOWN, BROKEN], [UNKNOWN, UNKNOWN]]
    assert drawn.flat(0).state.tolist() == [[UNKNOWN, FINITE], [UNKNOWN, UNKNOWN]]
    assert drawn.flat(1).source.shape == (2, 2, 2)
    line = make_sweep("balanced_loss", "epsilon=1e-12:1e-2:log:3")
    flat = grid(line, view(broken(Task((0,), 0), 4))).flat()
    assert flat.state.shape == (3, 1)
    assert flat.source[1, 0].tolist() == [0, 0]


@given(st.tuples(*[st.integers(0, 63)] * 4))
def test_a_line_takes_a_cell_at_each_place_of_its_longer_side(ends: tuple[int, ...]) -> None:
    start, end = ends[:2], ends[2:]
    cells = along(start, end)
    assert (cells[0], cells[-1]) == (start, end)
    steps = np.abs(np.diff(cells, axis=0))
    assert len(cells) == np.abs(np.subtract(end, start)).max() + 1
    assert (steps <= 1).all()
    exact = np.linspace(start, end, len(cells))
    assert (np.abs(np.array(cells) - exact) <= 0.5 + 1e-9).all()


def test_a_table_has_a_row_a_run_with_its_settings(sweep: Sweep) -> None:
    task = Task((0, 2), 1)
    cells = [Cell((0, 2), sweep.settings((0, 2)), (broken(task, 9),)), Cell((1, 1), {}, ())]
    columns = cell_columns(sweep, cells)
    assert {name: values[0] for name, values in columns.items() if name != "loss"} == {
        "epsilon": 1e-12,
        "learning_rate": 1.0,
        "seed": 1,
        "first_bad_step": 9,
        "mechanism": "log-of-zero",
        "parameters": "W b",
        "metric": 0.5,
        "failed": "",
    }
    assert all(len(values) == 1 for values in columns.values())
