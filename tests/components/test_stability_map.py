"""The map's figures: what each cell, mark and line is, read back as the browser reads it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from components.axis_choice import AxisChoice
from components.figures.categories import MOST, categories, name_of_set
from components.figures.map_axes import DrawnAxis
from components.figures.map_cut import map_cut
from components.figures.map_overlays import Chosen, Spot, Spots
from components.figures.stability_map import Map, View, outline, stability_map
from components.palette import DARK, LIGHT
from components.plotly_view import pack
from models.errors import BadInput
from models.scenarios import scenario
from models.sweeps.axes import Axis
from models.sweeps.grid import grid
from models.sweeps.plan import Sweep, Task
from models.sweeps.results import RunResult
from models.sweeps.running import SweepView

from .views import customdata, decode

Figure = dict[str, Any]
EPSILON = Axis("epsilon", (1e-9, 1e-8, 1e-7), log=True)
DTYPE = Axis("dtype", ("float32", "float64"))
STEPS = 100


def drawn(results: list[RunResult], axes: tuple[Axis, ...] = (EPSILON, DTYPE), **parts: Any) -> Map:
    chosen = scenario("balanced_loss")
    sweep = Sweep("balanced_loss", chosen.config("as-posted"), axes, STEPS)
    view = SweepView("running", "", {r.task: r for r in results}, {}, 0, 0.0, 0.0, None)
    y = DrawnAxis.of(axes[1], "dtype") if len(axes) > 1 else DrawnAxis.of_list("", ("",))
    x = DrawnAxis.of(axes[0], "ε")
    return Map(grid(sweep, view).flat(), x, y, STEPS, 1, "accuracy", **parts)


def broken(i: int, j: int, step: int, mechanism: str = "log-of-zero") -> RunResult:
    return RunResult(Task((i, j), 0), step, math.nan, 0.5, ("W1", "b1"), mechanism)


def finite(i: int, j: int, loss: float) -> RunResult:
    return RunResult(Task((i, j), 0), None, loss, 0.9)


def cells(figure: Figure, curve: int) -> np.ndarray:
    """[x, y] of a heatmap, NaN where it has no cell."""
    return decode(figure["data"][curve]["z"]).T


FEW = [broken(0, 0, 9), finite(1, 1, 0.5), finite(2, 1, 0.25)]


def test_finite_cells_show_their_loss_and_broken_ones_their_step() -> None:
    figure = stability_map(drawn(FEW))
    good, bad = cells(figure, 0), cells(figure, 1)
    assert good[1, 1] == 0.5
    assert good[2, 1] == 0.25
    assert np.isfinite(good).sum() == 2
    assert bad[0, 0] == pytest.approx(1.0, rel=1e-3), "log10 of step 9 + 1"
    assert np.isfinite(bad).sum() == 1
    layout = figure["layout"]
    assert layout["coloraxis2"]["cmax"] == pytest.approx(math.log10(STEPS + 1))
    assert figure["data"][0]["coloraxis"] != figure["data"][1]["coloraxis"]


def test_what_is_not_computed_yet_shows_the_nearest_cell_faintly() -> None:
    results = [broken(0, 0, 9), broken(0, 1, 9), finite(2, 0, 0.5), finite(2, 1, 0.25)]
    figure = stability_map(drawn(results))
    good, bad = cells(figure, 3), cells(figure, 4)
    pictured = np.isfinite(good) | np.isfinite(bad)
    assert pictured[1].all()
    assert not pictured[[0, 2]].any(), "known cells are not faint"
    assert figure["data"][3]["opacity"] < 0.5


def test_the_hover_text_of_a_broken_cell_has_its_whole_story() -> None:
    figure = stability_map(drawn(FEW))
    told = customdata(figure["data"][1])[0, 0]
    assert told[0] == pytest.approx(1e-9)
    assert told[1] == "float32"
    assert told[2] == 9
    assert math.isnan(told[3])
    assert list(told[4:6]) == ["log-of-zero", "W1, b1"]
    template = figure["data"][1]["hovertemplate"]
    assert all(f"customdata[{i}]" in template for i in range(6))


@pytest.mark.parametrize("view", ["mechanism", "parameters"])
def test_kinds_have_a_colour_and_a_mark_of_their_own(view: View) -> None:
    results = [broken(0, 0, 9), broken(1, 0, 9), broken(2, 1, 3, "divide-by-zero")]
    if view == "parameters":
        results[2] = RunResult(Task((2, 1), 0), 3, 0.1, 0.5, ("W2",), "log-of-zero")
    figure = stability_map(drawn(results), view)
    bad = cells(figure, 1)
    assert bad[0, 0] == bad[1, 0] == 0, "the most frequent comes first"
    assert bad[2, 1] == 1
    symbols = [
        t["marker"]["symbol"]
        for t in figure["data"]
        if t["type"] == "scatter" and t.get("mode") == "markers" and isinstance(t["x"], dict)
    ]
    assert {"x-thin", "triangle-up"} <= set(symbols)
    names = [t["name"] for t in figure["data"] if t.get("name")]
    expected = ("log-of-zero", "divide-by-zero") if view == "mechanism" else ("W1, b1", "W2")
    assert [any(name in n for n in names) for name in expected] == [True, True]


def test_a_failed_cell_is_neither_finite_nor_broken() -> None:
    figure = stability_map(drawn([RunResult(Task((1, 0), 0), failed="lost")]))
    assert [np.isfinite(cells(figure, i)[1, 0]) for i in range(5)] == [
        False, False, True, False, False,
    ]  # fmt: skip


def test_the_outline_is_every_edge_between_broken_and_the_rest() -> None:
    inside = np.array([[True, False], [True, True]])
    line = outline(inside, np.array([0.0, 1, 2]), np.array([0.0, 1, 2]), LIGHT)
    x, y = decode(line["x"]).reshape(-1, 3), decode(line["y"]).reshape(-1, 3)
    edges = {((a[0], b[0]), (a[1], b[1])) for a, b in zip(x, y, strict=True)}
    assert edges == {((1, 1), (1, 2)), ((0, 1), (1, 1))}
    assert np.isnan(x[:, 2]).all()


def test_numbers_are_drawn_to_scale_and_anything_else_as_a_list() -> None:
    log = DrawnAxis.of(EPSILON, "ε")
    assert np.allclose(log.edges, [-9.5, -8.5, -7.5, -6.5])
    assert log.layout()["tickprefix"].startswith("10")
    assert log.place(1e-8) == pytest.approx(-8)
    assert log.place(0.0) is None
    narrow = DrawnAxis.of(Axis("learning_rate", (0.1, 0.2, 0.4), log=True), "").layout()
    assert dict(zip(narrow["ticktext"], narrow["tickvals"], strict=True))["0.1"] == -1
    words = DrawnAxis.of(DTYPE, "dtype")
    assert words.place("float64") == 1
    assert words.place("float16") is None
    assert words.layout()["ticktext"] == ["float32", "float64"]
    flags = DrawnAxis.of(Axis("from_logits", (False, True)), "")
    assert flags.listed, "on and off are no numbers"
    assert DrawnAxis.of(Axis("epsilon", (1e-7, 1e-9)), "").listed, "nor is what does not rise"


def test_a_click_on_an_overlay_finds_its_curve() -> None:
    spots = Spots(
        "trials", [Spot({"epsilon": 3e-8, "dtype": "float64"}, "a")], ("epsilon", "dtype"), {}
    )
    overlays = (Chosen((0, 1), ((0, 0), (2, 1))), spots)
    figure = stability_map(drawn(FEW, overlays=overlays))
    _, frame, _, line, points = figure["data"][5:10]
    assert decode(frame["x"])[[0, 1]] == pytest.approx([-9.5, -8.5])
    assert decode(line["y"]).tolist() == [0, 1]
    assert decode(points["x"]) == pytest.approx([math.log10(3e-8)])
    assert decode(points["y"]).tolist() == [1]


def test_a_cut_has_the_loss_where_it_is_finite_and_the_step_where_it_broke() -> None:
    known = [broken(0, 0, 9), finite(1, 0, 0.5)]
    picture = drawn(known)
    figure = map_cut(picture.grid, [(0, 0), (1, 0), (2, 0)], (picture.x, picture.y), STEPS)
    loss, bad, kept = (decode(trace["y"]) for trace in figure["data"])
    assert decode(figure["data"][0]["x"]) == pytest.approx([-9, -8, -7])
    assert figure["data"][0]["text"] == ["1e-9", "1e-8", "1e-7"]
    assert loss.tolist()[1] == 0.5
    assert bad[0] == 9
    assert kept[1] == STEPS
    assert np.isnan([loss[0], loss[2], bad[1], bad[2], kept[0]]).all(), "unknown is a gap"
    upright = map_cut(picture.grid, [(0, 0), (0, 1)], (picture.x, picture.y), STEPS)
    assert upright["layout"]["xaxis"]["ticktext"] == ["float32", "float64"]


@pytest.mark.parametrize("view", ["loss", "metric", "mechanism", "parameters", "seeds"])
@pytest.mark.parametrize("dark", [False, True])
def test_every_view_is_json_with_few_traces_from_the_empty_map_on(view: View, dark: bool) -> None:
    empty = stability_map(drawn([]), view, dark=dark)
    full = stability_map(drawn(FEW), view, dark=dark)
    for figure in (empty, full):
        json.dumps(figure, allow_nan=False)
        assert len(figure["data"]) < 20
    single = stability_map(drawn([broken(0, 0, 3)][:0], (EPSILON,)), view, dark=dark)
    assert single["layout"]["height"] < full["layout"]["height"]


def test_a_large_map_is_small_on_the_wire() -> None:
    axes = (
        Axis("epsilon", tuple(np.geomspace(1e-12, 1e-2, 64).tolist()), True),
        Axis("learning_rate", tuple(np.geomspace(1e-3, 1, 64).tolist()), True),
    )
    rng = np.random.default_rng(0)
    results = [
        broken(i, j, int(rng.integers(STEPS))) if i < 20 else finite(i, j, float(rng.random()))
        for i in range(64)
        for j in range(64)
    ]
    figure = stability_map(drawn(results, axes))
    assert len(pack(figure)) < 60_000


def test_names_beyond_the_colours_share_the_last() -> None:
    kinds = categories(tuple(f"m{i}" for i in range(MOST + 3)), DARK)
    assert len(kinds) == MOST
    assert kinds[-1].name == "4 others"
    assert len({kind.symbol for kind in kinds}) == len({kind.colour for kind in kinds}) == MOST
    assert name_of_set(("a", "b")) == "a, b"
    assert name_of_set(tuple("abcde")) == "a … e (5)"


@pytest.mark.parametrize(
    "text",
    ["epsilon=1e-12:1e-2:log:32", "hidden_1=1:8:linear:64", "dtype=float32,float64",
     "from_logits=off,on", "learning_rate=0.1,1,0.01"],
)  # fmt: skip
def test_an_axis_reads_back_as_it_is_written(text: str) -> None:
    balanced = scenario("balanced_loss")
    choice = AxisChoice.read(balanced, text)
    assert choice.text == text
    assert AxisChoice.read(balanced, choice.text) == choice
    assert choice.axis(balanced).knob == choice.knob


def test_what_is_wrong_with_an_axis_is_said_about_its_knob() -> None:
    balanced = scenario("balanced_loss")
    for choice, words in (
        (AxisChoice("epsilon", "purple", "1", True), "“purple” is not a number"),
        (AxisChoice("epsilon", "1e-3", "1e-9", True), "low end first"),
        (AxisChoice("dtype"), "at least one value"),
        (AxisChoice("hidden_1", "1", "1000"), "out of range"),
    ):
        with pytest.raises(BadInput, match=words) as caught:
            choice.axis(balanced)
        assert caught.value.field == choice.knob
