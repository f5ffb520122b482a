"""The figures' contents, read back as the browser reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components import figures
from components.figures.arrays import rounded, shortest, smallest, tenths, typed
from components.figures.states import NAN, NEGINF, POSINF, SUBNORMAL, ZERO, thinned
from components.palette import DARK, LIGHT
from components.plotly_view import pack
from models.training.history import History, HistoryView

from .views import customdata, decode, view

Figure = dict[str, Any]
OVER_STEPS = [
    figures.health_heatmap,
    figures.loss_curve,
    figures.norm_curves,
    figures.update_ratio_curves,
]


def with_health(history: HistoryView, **cells: tuple[int, int, float]) -> HistoryView:
    """A view with `field=(parameter, column, value)` set in the raw gradients."""
    fields = {name: getattr(history.raw, name).copy() for name in cells}
    for name, (row, column, value) in cells.items():
        fields[name][row, column] = value
    return replace(history, raw=replace(history.raw, **fields))


def states(figure: Figure) -> np.ndarray:
    """State codes that are drawn: the heatmap with a colour for each."""
    return decode(figure["data"][1]["z"])


def marks(figure: Figure, symbol: str) -> list[Figure]:
    return [t for t in figure["data"] if t.get("marker", {}).get("symbol") == symbol]


# --- arrays ---------------------------------------------------------------------------------

plotly_dtypes = st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"])


@given(
    plotly_dtypes.flatmap(
        lambda d: arrays.arrays(np.dtype(d), arrays.array_shapes(max_dims=3, min_side=0))
    )
)
def test_typed_arrays_come_back_bit_for_bit(array: np.ndarray) -> None:
    back = decode(typed(array))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_typed_takes_strided_and_big_endian_arrays() -> None:
    array = np.arange(12, dtype=">f8").reshape(3, 4)
    np.testing.assert_array_equal(decode(typed(array.T[::2])), array.T[::2])


@pytest.mark.parametrize("dtype", [np.int64, bool, object])
def test_typed_refuses_what_plotly_cannot_read(dtype: type) -> None:
    with pytest.raises(TypeError, match="Plotly reads no arrays of"):
        typed(np.zeros(3, dtype))


@given(arrays.arrays(np.int64, 5, elements=st.integers(-(2**53), 2**53)))
def test_smallest_keeps_every_whole_number(integers: np.ndarray) -> None:
    np.testing.assert_array_equal(decode(typed(smallest(integers))).astype(np.int64), integers)


@given(arrays.arrays(np.float64, 4, elements=st.floats()))
def test_shortest_loses_nothing_and_rounded_at_most_a_thousandth(floats: np.ndarray) -> None:
    np.testing.assert_array_equal(decode(typed(shortest(floats))), floats)
    usable = np.isfinite(floats) & (np.abs(floats) < 1e308) & (np.abs(floats) > 1e-307)
    got = decode(typed(rounded(floats))).astype(np.float64)
    np.testing.assert_allclose(got[usable], floats[usable], rtol=1e-3)
    strange = ~np.isfinite(floats)
    np.testing.assert_array_equal(got[strange], floats[strange])


@given(arrays.arrays(np.float64, 4, elements=st.floats(1e-320, 1e308)))
def test_tenths_are_within_twelve_per_cent(magnitude: np.ndarray) -> None:
    np.testing.assert_array_less(np.abs(tenths(magnitude) / 10 - np.log10(magnitude)), 0.0501)


def test_tenths_of_zero_is_zero_again() -> None:
    assert (10 ** (tenths(np.array([0.0])) / 10)).tolist() == [0.0]


@given(
    arrays.arrays(bool, arrays.array_shapes(min_dims=2, max_dims=2, max_side=30)),
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
)
def test_thinning_keeps_one_marked_cell_of_each_block(
    cells: np.ndarray, block: tuple[int, int]
) -> None:
    rows, columns = thinned(cells, block)
    assert np.all(cells[rows, columns])
    kept = list(zip(rows // block[0], columns // block[1], strict=True))
    marked = np.argwhere(cells) // block
    assert sorted(kept) == sorted(set(map(tuple, marked)))


# --- health heatmap -------------------------------------------------------------------------


def test_health_heatmap_shows_states_in_order_of_badness() -> None:
    history = view(columns=8, parameters=6)
    size = int(history.sizes[0])
    history = with_health(history, nan=(0, 1, 1), posinf=(0, 2, 3), neginf=(1, 2, 3))
    history = with_health(history, zero=(3, 4, size))
    history = with_health(history, subnormal=(4, 5, size - int(history.raw.zero[4, 5])))
    history.raw.posinf[0, 1] = 5  # NaN is worse
    expected = np.zeros((6, 8), int)
    expected[0, 1], expected[0, 2], expected[1, 2] = NAN, POSINF, NEGINF
    expected[3, 4], expected[4, 5] = ZERO, SUBNORMAL
    figure = figures.health_heatmap(history)
    np.testing.assert_array_equal(states(figure), expected)
    for symbol, row, column in [
        ("x-thin", 0, 1),
        ("triangle-up", 0, 2),
        ("triangle-down", 1, 2),
        ("circle-open", 3, 4),
        ("diamond", 4, 5),
    ]:
        (trace,) = marks(figure, symbol)
        assert trace["y"] == [history.parameters[row]]
        assert decode(trace["x"]).tolist() == [column]


def test_health_heatmap_places_columns_at_their_steps() -> None:
    history = view(columns=5, width=4, parameters=2)
    trace = figures.health_heatmap(history)["data"][0]
    np.testing.assert_allclose(decode(trace["x"]), [-0.5, 3.5, 7.5, 11.5, 15.5, 19.5])
    assert trace["y"] == ["encoder.Wz", "encoder.Uz"]


@pytest.mark.parametrize("which", ["raw", "applied"])
def test_health_heatmap_hover_has_the_numbers(which: str) -> None:
    history = view(columns=50, width=4)
    history = with_health(history, nan=(2, 3, 7), posinf=(2, 3, 1), max_abs=(5, 5, 0.0))
    health = getattr(history, which)
    data = customdata(figures.health_heatmap(history, which)["data"][0])
    for i, name in enumerate(("nan", "posinf", "neginf", "zero", "subnormal")):
        np.testing.assert_array_equal(data[..., i], getattr(health, name))
    np.testing.assert_array_equal(data[..., 5], np.tile(history.sizes[:, None], 50))
    np.testing.assert_allclose(data[..., 6], health.max_abs, rtol=0.13)
    present = health.max_abs > 0
    np.testing.assert_allclose(data[present, 7], health.norm[present], rtol=0.27)
    np.testing.assert_array_equal(data[..., 8], np.tile(history.first_step, (20, 1)))
    np.testing.assert_array_equal(data[..., 9], np.tile(history.last_step, (20, 1)))
    np.testing.assert_array_equal(data[..., 10], health.step)


def test_health_heatmap_scale_covers_the_data_and_stands_still() -> None:
    history = view(columns=20, parameters=3)
    for low, high in [(1e-12, 1e38), (3e-7, 2e-6), (1.0, 1.0), (1e-44, 1e300)]:
        magnitude = np.geomspace(low, high, 60).reshape(3, 20)
        shown = replace(history, raw=replace(history.raw, max_abs=magnitude))
        axis = figures.health_heatmap(shown)["layout"]["coloraxis"]
        assert axis["cmin"] <= 10 * np.log10(low) + 0.5
        assert axis["cmax"] >= 10 * np.log10(high) - 0.5
        assert axis["cmin"] % 50 == axis["cmax"] % 50 == 0  # whole multiples of five decades
        assert 2 <= len(axis["colorbar"]["tickvals"]) <= 9
    assert axis["colorbar"]["ticktext"][0] == "10⁻⁴⁵"


def test_health_heatmap_scale_leaves_bad_cells_out() -> None:
    history = with_health(view(columns=20), nan=(0, 0, 1), max_abs=(0, 0, 1e30))
    assert figures.health_heatmap(history)["layout"]["coloraxis"]["cmax"] <= 100


def test_health_heatmap_follows_the_theme() -> None:
    assert DARK.zero in json.dumps(figures.health_heatmap(view(5), dark=True))
    assert LIGHT.zero in json.dumps(figures.health_heatmap(view(5), dark=False))


# --- curves ---------------------------------------------------------------------------------


def test_loss_that_is_not_finite_is_marked_not_dropped() -> None:
    history = view(columns=40)
    history.loss[10], history.loss[20], history.loss[39] = np.inf, -np.inf, np.nan
    figure = figures.loss_curve(history)
    line, *_ = figure["data"]
    drawn = decode(line["y"])
    assert np.flatnonzero(np.isnan(drawn)).tolist() == [10, 20, 39]
    (strip,) = [t for t in figure["data"] if t["type"] == "heatmap"]
    codes = decode(strip["z"])[0]
    assert codes[[10, 20, 39]].tolist() == [POSINF, NEGINF, NAN]
    assert np.count_nonzero(codes) == 3
    for symbol, step in [("triangle-up", 10), ("triangle-down", 20), ("x-thin", 39)]:
        (trace,) = marks(figure, symbol)
        assert decode(trace["x"]).tolist() == [step]
        assert trace["yaxis"] == "y2"


@pytest.mark.parametrize(
    ("loss", "scale"),
    [
        (np.geomspace(10, 0.1, 30), "log"),
        (np.linspace(2, 1, 30), "linear"),
        (np.linspace(100, -1, 30), "linear"),
        (np.full(30, np.nan), "linear"),
        (np.r_[np.geomspace(10, 0.1, 29), np.inf], "log"),
    ],
)
def test_loss_axis_is_logarithmic_where_that_helps(loss: np.ndarray, scale: str) -> None:
    figure = figures.loss_curve(replace(view(columns=30), loss=loss))
    assert figure["layout"]["yaxis"]["type"] == scale


def test_changed_knobs_are_marked() -> None:
    history = replace(view(columns=30), marks=((5, "ε = 1e-7"), (20, "learning rate = 0.05")))
    layout = figures.loss_curve(history)["layout"]
    assert [(s["x0"], s["x1"]) for s in layout["shapes"]] == [(5, 5), (20, 20)]
    assert [note["text"] for note in layout["annotations"]] == ["ε = 1e-7", "learning rate = 0.05"]


def test_norm_curves_break_at_bad_cells_and_count_them_above() -> None:
    history = with_health(view(columns=30), nan=(0, 12, 4), posinf=(1, 12, 1), neginf=(1, 13, 1))
    figure = figures.norm_curves(history)
    for i, gaps in [(0, [12]), (1, [12, 13]), (2, [])]:
        curve = decode(figure["data"][i]["y"])
        assert np.flatnonzero(np.isnan(curve)).tolist() == gaps
        kept = ~np.isnan(curve)
        np.testing.assert_allclose(curve[kept], history.raw.norm[i][kept], rtol=1e-3)
    (strip,) = [t for t in figure["data"] if t["type"] == "heatmap"]
    assert decode(strip["z"])[0, [11, 12, 13]].tolist() == [0, NAN, POSINF]
    assert customdata(strip)[0, 12].tolist() == [12, 12, 1, 1, 20]


def test_finite_points_between_gaps_are_seen() -> None:
    history = view(columns=9, parameters=1)
    history.raw.nan[0, ::2] = 1
    dots = figures.norm_curves(history)["data"][1]
    assert dots["mode"] == "markers"
    assert decode(dots["x"]).tolist() == [1, 3, 5, 7]


def test_twenty_curves_are_told_apart() -> None:
    figure = figures.norm_curves(view(columns=5))
    styles = {(t["line"]["color"], t["line"]["dash"]) for t in figure["data"]}
    assert len(styles) == 20
    assert [trace["name"] for trace in figure["data"]] == list(view(5).parameters)


def test_update_ratio_names_its_healthy_band() -> None:
    history = view(columns=30)
    history.update_ratio[3, 7] = np.nan
    figure = figures.update_ratio_curves(history)
    curve = decode(figure["data"][3]["y"])
    assert np.flatnonzero(np.isnan(curve)).tolist() == [7]
    band = figure["layout"]["shapes"][0]
    assert band["y0"] < 1e-3 < band["y1"]
    assert "healthy" in band["label"]["text"]


# --- elements -------------------------------------------------------------------------------


def test_elements_show_each_entry() -> None:
    tiny = np.float32(1e-40)
    values = np.array([[np.nan, np.inf, -np.inf], [0, tiny, -2.5e7]], np.float32)
    figure = figures.element_heatmap(values, "Wy")
    assert states(figure).tolist() == [[NAN, POSINF, NEGINF], [ZERO, SUBNORMAL, 0]]
    data = customdata(figure["data"][0])
    np.testing.assert_array_equal(data[..., 0], [[0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(data[..., 1], [[0, 1, 2], [0, 1, 2]])
    np.testing.assert_allclose(data[..., 2], values, rtol=1e-3)


@pytest.mark.parametrize(
    ("dtype", "subnormal"), [(np.float16, 1e-6), (np.float32, 1e-40), (np.float64, 1e-310)]
)
def test_subnormal_depends_on_the_dtype(dtype: type, subnormal: float) -> None:
    values = np.array([subnormal, np.finfo(dtype).tiny], dtype)
    assert states(figures.element_heatmap(values, "b")).tolist() == [[SUBNORMAL, 0]]


@pytest.mark.parametrize(
    ("shape", "cells"),
    [
        ((), (1, 1)),
        ((5,), (1, 5)),
        ((3, 4, 5), (12, 5)),
        ((128, 128), (128, 128)),
        ((1, 300), (1, 100)),
    ],
)
def test_elements_of_any_rank(shape: tuple[int, ...], cells: tuple[int, int]) -> None:
    assert states(figures.element_heatmap(np.ones(shape, np.float32), "w")).shape == cells


@given(
    st.tuples(st.integers(100, 400), st.integers(100, 400)),
    st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 1e30]), max_size=5),
    st.randoms(use_true_random=False),
)
def test_a_block_shows_its_worst_entry(
    shape: tuple[int, int], bad: list[float], random: Any
) -> None:
    values = np.full(shape, 1.0, np.float32)
    for value in bad:
        values[random.randrange(shape[0]), random.randrange(shape[1])] = value
    data = customdata(figures.element_heatmap(values, "w")["data"][0])
    assert max(data.shape[:2]) <= 128
    height, width = -(-shape[0] // 128), -(-shape[1] // 128)
    for i, j in np.argwhere(values != 1):
        row, column, shown = data[i // height, j // width]
        block = values[i // height * height :, j // width * width :][:height, :width].ravel()
        if np.isnan(block).any():
            assert np.isnan(shown)
        else:
            assert abs(shown) == pytest.approx(np.abs(block).max(), rel=1e-3)
        np.testing.assert_allclose(shown, values[int(row), int(column)], rtol=1e-3)


# --- every figure ---------------------------------------------------------------------------


@pytest.mark.parametrize("figure", OVER_STEPS)
@pytest.mark.parametrize("columns", [0, 1, 2, 400])
def test_figures_of_any_length_are_strict_json(figure: Any, columns: int) -> None:
    history = view(columns) if columns else History(("W", "b"), np.array([6, 2])).view()
    json.dumps(figure(history), allow_nan=False)


def test_payload_of_the_health_heatmap_is_bounded() -> None:
    history = view(columns=200)
    assert len(pack(figures.health_heatmap(history))) <= 12_000
    rng = np.random.default_rng(1)
    noise = {name: rng.integers(0, 60, (20, 200)) for name in ("nan", "posinf", "zero")}
    worst = replace(history, raw=replace(history.raw, **noise))
    assert len(pack(figures.health_heatmap(worst))) <= 30_000


def test_marks_stay_few_however_many_cells_are_bad() -> None:
    history = view(columns=400)
    history.raw.nan[:] = 1
    (trace,) = marks(figures.health_heatmap(history), "x-thin")
    assert 20 * 20 <= len(trace["y"]) <= 20 * 40
