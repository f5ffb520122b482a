"""Axes and the order of a sweep's runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import BadInput
from models.scenarios import scenario
from models.sweeps.axes import read_axis
from models.sweeps.plan import COARSE_CELLS, WIDEST_PART, Sweep, levels, parts

BALANCED = scenario("balanced_loss")


def test_a_range_has_both_ends_and_its_resolution() -> None:
    axis = read_axis(BALANCED, "epsilon=1e-12:1e-2:log:32")
    assert len(axis.values) == 32
    assert (axis.values[0], axis.values[-1]) == (1e-12, 1e-2)
    assert axis.log
    np.testing.assert_allclose(np.diff(np.log10(np.array(axis.values, float))), 10 / 31)


def test_a_knob_s_own_scale_is_the_default() -> None:
    assert read_axis(BALANCED, "learning_rate=1e-3:1").log
    assert not read_axis(scenario("basis_fit"), "x_low=-1:0.5:4").log


def test_whole_numbers_come_once() -> None:
    axis = read_axis(BALANCED, "hidden_1=1:4:log:16")
    assert axis.values == (1, 2, 3, 4)
    assert all(isinstance(value, int) for value in axis.values)


def test_values_may_be_listed() -> None:
    assert read_axis(BALANCED, "dtype=float32, float64").values == ("float32", "float64")
    bounds = read_axis(scenario("basis_fit"), "exponent_bounds=0.1..2,1..2")
    assert bounds.values == ((0.1, 2.0), (1.0, 2.0))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("epsilon", "is no axis"),
        ("epsilon=1e-12:1e-2:65", "from 2 to 64"),
        ("epsilon=1e-2:1e-12", "low end first"),
        ("epsilon=1e-20:1e-2", "out of range"),
        ("epsilon=1e-12:1e-2:cubic", "neither log nor linear"),
        ("dtype=float32:float64", "has no range"),
        ("nothing=1:2", "has no knob"),
    ],
)
def test_bad_axes_are_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        read_axis(BALANCED, text)


@pytest.mark.parametrize(
    ("axes", "options", "says"),
    [
        (["seed=0:3:4"], {}, "seeds"),
        (["on_bad=skip,halt"], {}, "first bad step"),
        (["epsilon=1e-9:1e-3", "epsilon=1e-9:1e-3"], {}, "two axes"),
        ([], {}, "from 1 to 3"),
        (["epsilon=1e-9:1e-3"], {"seeds": 9}, "from 1 to 8"),
        (["epsilon=1e-9:1e-3"], {"seed": 9995, "seeds": 8}, "out of range"),
        (["epsilon=1e-9:1e-3"], {"steps": 0}, "at least 1"),
    ],
)
def test_bad_sweeps_are_refused(
    make_sweep: Callable[..., Sweep], axes: list[str], options: dict[str, int], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        make_sweep("balanced_loss", *axes, **options)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_levels_hold_every_cell_once_and_the_ends_first(shape: list[int]) -> None:
    found = list(levels(tuple(shape)))
    cells = [index for level in found for index in level]
    assert len(cells) == len(set(cells)) == np.prod(shape)
    assert len(found[0]) <= COARSE_CELLS
    assert {(0,) * len(shape), tuple(n - 1 for n in shape)} <= set(found[0])


def test_parts_hold_every_task_once_and_what_is_done_never(
    make_sweep: Callable[..., Sweep],
) -> None:
    sweep = make_sweep(
        "balanced_loss", "epsilon=1e-12:1e-2:24", "form=where,product", "learning_rate=1e-3:1:5",
        seeds=3,
    )  # fmt: skip
    tasks = [task for part in parts(sweep) for task in part.tasks]
    assert len(tasks) == len(set(tasks)) == 24 * 2 * 5 * 3
    assert set(tasks) == set(sweep.tasks())
    for part in parts(sweep):
        assert len(part.tasks) <= WIDEST_PART
        assert len({config["form"] for config in part.configs}) == 1
    assert {t for p in parts(sweep, tasks[:700]) for t in p.tasks} == set(tasks[700:])
