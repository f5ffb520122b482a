"""The pictures of a diagnosis: path, through time, lens, and runs on one clock."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from components.figures.compare import alike, parting
from components.figures.health_heatmap import health_heatmap
from components.figures.lens import range_figure
from components.figures.path_picture import path_picture, stops
from components.figures.through_time import growth, through_time
from models.diagnosis.lines import Source
from models.diagnosis.report import Origin, Step
from models.training.headroom import RANGES
from models.training.health import FIELDS
from models.training.history import History
from models.training.program import Rows


def step(op: str, phase: str, line: int, nan: int = 0, inf: int = 0) -> Step:
    return Step(op, phase, Source("/a/loss.py", line, "x"), nan, inf, 8, 1.0, (0.0,))


@pytest.fixture
def origin() -> Origin:
    path = (
        step("Log", "forward", 3, inf=1),
        step("Reciprocal", "backward", 3, inf=1),
        step("Mul", "backward", 3, nan=1),
        step("SigmoidGrad", "backward", 2, nan=1),
    )
    return Origin(
        "Log", "forward", "log-of-zero", (), path[0].source, (2,), (0.0,), -np.inf, 1,
        ("W", "b"), path=path,
    )  # fmt: skip


def test_the_path_is_folded_by_line_and_phase(origin: Origin) -> None:
    chain = stops(origin)
    assert [(s.phase, s.place) for s in chain] == [
        ("forward", "loss.py:3"),
        ("backward", "loss.py:3"),
        ("backward", "loss.py:2"),
    ]
    assert chain[1].label == "Reciprocal, Mul (2 operations)"


def test_every_stop_is_in_the_picture_with_what_it_reaches(origin: Origin) -> None:
    figure = path_picture(stops(origin), origin.reaches)
    text = json.dumps(figure["data"], ensure_ascii=False)
    assert "<b>Log</b>  loss.py:3" in text
    assert "<b>2 reached</b>: W, b" in text
    symbols = figure["data"][0]["marker"]["symbol"]
    assert symbols[0] != symbols[1], "Inf and NaN have marks of their own"


def recurrence(steps: int, factor: float, start: float, bad: int = 0) -> np.ndarray:
    """Health in forward order of a gradient that grows by `factor` a step on the way back."""
    rows = np.zeros((steps, len(FIELDS)))
    rows[:, 5] = (start * factor ** np.arange(steps))[::-1]
    rows[:bad, 0] = 1
    return rows


def test_growth_is_the_mean_factor_and_where_the_dtype_is_left() -> None:
    health = {
        "encoder": recurrence(10, 2.0, 2.0**10, bad=4),
        "decoder": recurrence(10, 2.0, 1.0),
    }
    factor, leaves = growth(health)
    assert factor == pytest.approx(2.0)
    assert leaves == "encoder step 4"
    assert growth({"decoder": health["decoder"]}) == (pytest.approx(2.0), None)


def test_the_time_picture_marks_the_steps_that_are_not_finite() -> None:
    figure = through_time({"encoder": recurrence(6, 10.0, 1.0, bad=2)}, limit=3.4e38)
    marks = figure["data"][1]
    assert marks["text"] == ["encoder step 1", "encoder step 2"]
    assert len(through_time({"decoder": recurrence(6, 10.0, 1.0)}, limit=3.4e38)["data"]) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_the_ranges_are_those_of_numpy(dtype: str) -> None:
    info = np.finfo(dtype)
    exact: tuple[Any, ...] = (info.smallest_subnormal, info.smallest_normal, info.max)
    assert RANGES[dtype] == tuple(float(x) for x in exact)
    figure = range_figure(dtype, 1.0, "W")
    assert f"{np.log10(float(info.max)):.1f} powers of ten" in str(figure["layout"])


def history(loss: np.ndarray) -> Any:
    n = len(loss)
    health = np.ones((n, 1, len(FIELDS)))
    kept = History(("W",), np.array([4]))
    kept.add(Rows(np.arange(n), loss, np.zeros(n, int), health, health, np.full((n, 1), np.nan)))
    return kept.view()


def test_runs_part_where_their_losses_differ_or_one_of_them_ends() -> None:
    loss = np.linspace(1, 0.5, 20)
    other = loss.copy()
    other[7:] *= 1.01
    assert parting(history(loss), history(other)) == 7
    assert parting(history(loss), history(loss[:12])) == 11
    assert parting(history(loss), history(loss)) is None


def test_heatmaps_that_are_compared_share_scale_and_clock() -> None:
    one, other = history(np.ones(5)), history(np.ones(9))
    one.raw.max_abs[:] = 1e-20
    figures = [health_heatmap(view, "raw") for view in (one, other)]
    alike(figures, 8)
    layouts = [figure["layout"] for figure in figures]
    assert layouts[0]["coloraxis"]["cmin"] == layouts[1]["coloraxis"]["cmin"]
    assert layouts[0]["xaxis"]["range"] == layouts[1]["xaxis"]["range"] == [-0.5, 8.5]
