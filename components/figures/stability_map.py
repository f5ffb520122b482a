"""The map: where training stays finite, how well it does there, and how it breaks elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from models.sweeps.grid import BROKEN, FAILED, FINITE, Grid

from ..palette import Palette, palette
from .arrays import planes, rounded, smallest, typed
from .categories import MOST, Category, categories, kind_scale, name_of_set
from .layout import layout
from .map_axes import DrawnAxis
from .map_scales import finite_scale, step_scale
from .states import legend_entry, thinned

if TYPE_CHECKING:
    from .map_overlays import Overlay

View = Literal["loss", "metric", "mechanism", "parameters", "seeds"]
MARKS_ACROSS = 14
FAINT = 0.4  # opacity of what is not computed yet
HEIGHT, FLAT_HEIGHT = 560, 190


@dataclass(frozen=True)
class Map:
    """What is drawn: a flat grid, its axes, and the words for its numbers."""

    grid: Grid
    x: DrawnAxis
    y: DrawnAxis
    steps: int
    seeds: int
    metric: str
    overlays: Sequence[Overlay] = field(default=())


def stability_map(drawn: Map, view: View = "loss", *, dark: bool = False) -> dict[str, Any]:
    """Curves 0 to 4 are the cells; a click on them has the point (place on y, place on x).

    0 finite, 1 broken, 2 failed, then those that are not computed yet and show the nearest known
    cell, faintly: 3 finite, 4 broken. Overlays follow in their order.
    """
    colours, grid = palette(dark), drawn.grid
    pictured = _Pictured(grid)
    kinds = _kinds(grid, view, colours)
    good, bad = _values(drawn, pictured, view)
    finite, finite_axis = finite_scale(good, view, drawn.metric, colours)
    hot_axis = step_scale(drawn.steps, drawn.seeds, view, colours)
    if kinds is not None:
        hot_axis = kind_scale(kinds)
    place = {"x": typed(drawn.x.edges), "y": typed(drawn.y.edges), "hoverongaps": False}
    broken, known = pictured.state == BROKEN, grid.known
    cool, hot = {"coloraxis": "coloraxis"}, {"coloraxis": "coloraxis2"}
    later = _later(drawn)
    traces = [
        _cells(finite, known & (pictured.state == FINITE), place | cool | _story(drawn)),
        _cells(bad, known & broken, place | hot | _broken_story(drawn)),
        _cells(
            np.zeros(finite.shape), known & (pictured.state == FAILED), place | _failed(colours)
        ),
        _cells(finite, ~known & (pictured.state == FINITE), place | cool | later),
        _cells(bad, ~known & broken, place | hot | later),
        *(
            trace
            for overlay in drawn.overlays
            for trace in overlay.traces(drawn.x, drawn.y, colours)
        ),
        *_marks(drawn, broken & known, bad if kinds else None, kinds, colours),
        outline(broken, drawn.x.edges, drawn.y.edges, colours),
        *_legend(kinds or [], colours),
    ]
    single = grid.state.shape[1] == 1
    height = FLAT_HEIGHT if single else HEIGHT
    y_axis = drawn.y.layout()
    if single:
        y_axis |= {"showticklabels": False, "ticks": "", "fixedrange": True}
    return {
        "data": traces,
        "layout": layout(
            height,
            xaxis=drawn.x.layout(),
            yaxis=y_axis,
            uirevision=f"{drawn.x.title}{drawn.x.span}{drawn.y.title}{drawn.y.span}",
            narrow=_narrow(height, kinds is None, view),
            coloraxis=finite_axis,
            coloraxis2=hot_axis,
        ),
    }


class _Pictured:
    """What each cell shows: its own state, or that of its source."""

    def __init__(self, grid: Grid) -> None:
        self.sources = tuple(np.moveaxis(np.maximum(grid.source, 0), -1, 0))
        self.there = grid.source[..., 0] >= 0
        self.state = np.where(self.there, grid.state[self.sources], 0)

    def __call__(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.where(self.there, values[self.sources], np.nan).astype(np.float64)


def _values(
    drawn: Map, pictured: _Pictured, view: View
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What colours a finite cell, and a broken one, in a view."""
    grid = drawn.grid
    good = pictured(grid.metric if view == "metric" else grid.loss)
    if view == "mechanism":
        return good, np.minimum(pictured(grid.mechanism), MOST - 1)
    if view == "parameters":
        return good, np.minimum(pictured(grid.parameters), MOST - 1)
    if view == "seeds":
        return good, pictured(grid.broken)
    return good, np.log10(pictured(grid.first_bad_step) + 1)


def _kinds(grid: Grid, view: View, colours: Palette) -> list[Category] | None:
    if view == "mechanism":
        return categories(grid.mechanisms, colours)
    if view == "parameters":
        return categories(tuple(map(name_of_set, grid.parameter_sets)), colours)
    return None


def _cells(values: NDArray[Any], where: NDArray[np.bool_], parts: dict[str, Any]) -> dict[str, Any]:
    """A heatmap of some of the cells; the grid's first axis runs across."""
    z = np.where(where, values, np.nan).T.astype(np.float32)
    return {"type": "heatmap", "z": typed(rounded(z)), **parts}


def _story(drawn: Map) -> dict[str, Any]:
    grid, steps = drawn.grid, f"{drawn.steps:,}"
    seeds = "<br>%{customdata[4]} of " + f"{drawn.seeds} seeds" if drawn.seeds > 1 else ""
    return {
        "customdata": planes(
            drawn.x.plane(True),
            drawn.y.plane(False),
            typed(rounded(grid.loss.T)),
            typed(rounded(grid.metric.T)),
            typed(grid.ended.T),
        ),
        "hovertemplate": f"<b>Finite for all {steps} steps</b><br>{_where(drawn)}"
        f"<br>final loss %{{customdata[2]:.4~g}}<br>{drawn.metric} %{{customdata[3]:.3f}}{seeds}"
        "<br>click for its card<extra></extra>",
    }


def _broken_story(drawn: Map) -> dict[str, Any]:
    grid = drawn.grid
    seeds = "<br>broken with %{customdata[6]} of %{customdata[7]} seeds" if drawn.seeds > 1 else ""
    sets = [name_of_set(names) for names in grid.parameter_sets]
    return {
        "customdata": planes(
            drawn.x.plane(True),
            drawn.y.plane(False),
            typed(smallest(np.nan_to_num(grid.first_bad_step.T).astype(np.int64))),
            typed(rounded(grid.bad_loss.T)),
            {**typed(grid.mechanism.T), "words": list(grid.mechanisms)},
            {**typed(grid.parameters.T), "words": sets},
            typed(grid.broken.T),
            typed(grid.ended.T),
        ),
        "hovertemplate": f"<b>Broke at step %{{customdata[2]:,d}}</b><br>{_where(drawn)}"
        "<br>%{customdata[4]}<br>not finite: %{customdata[5]}"
        f"<br>loss there %{{customdata[3]:.4~g}}{seeds}<br>click for its card<extra></extra>",
    }


def _later(drawn: Map) -> dict[str, Any]:
    return {
        "opacity": FAINT,
        "customdata": planes(
            drawn.x.plane(True), drawn.y.plane(False), typed(smallest(drawn.grid.survived.T))
        ),
        "hovertemplate": f"<b>Not computed yet</b>; coloured as the nearest known cell"
        f"<br>{_where(drawn)}<br>finite for %{{customdata[2]:,d}} steps so far<extra></extra>",
    }


def _failed(colours: Palette) -> dict[str, Any]:
    return {
        "colorscale": [[0, colours.muted], [1, colours.muted]],
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "hovertemplate": "<b>Could not be computed</b><br>click for the reason<extra></extra>",
    }


def _where(drawn: Map) -> str:
    told = f"{drawn.x.title} {drawn.x.hover(0)}"
    return told if not drawn.y.title else f"{told}<br>{drawn.y.title} {drawn.y.hover(1)}"


def _marks(
    drawn: Map,
    broken: NDArray[np.bool_],
    kind: NDArray[np.float64] | None,
    kinds: list[Category] | None,
    colours: Palette,
) -> list[dict[str, Any]]:
    """About one mark a block of broken cells, and for what failed; a mark of its own each kind."""
    block = tuple(max(1, round(n / MARKS_ACROSS)) for n in broken.shape)
    groups = [(broken, "x-thin")]
    if kinds is not None and kind is not None:
        groups = [(broken & (kind == i), k.symbol) for i, k in enumerate(kinds)]
    groups.append((drawn.grid.state == FAILED, "line-ew"))
    traces = []
    for where, symbol in groups:
        i, j = thinned(where, (block[0], block[1]))
        marker = {"symbol": symbol, "size": 7, "color": "#FFFFFF"}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": typed(drawn.x.centres[i]),
                "y": typed(drawn.y.centres[j]),
                "marker": {**marker, "line": {"color": "#FFFFFF", "width": 1.5}},
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    return traces


def outline(
    inside: NDArray[np.bool_],
    x: NDArray[np.floating[Any]],
    y: NDArray[np.floating[Any]],
    colours: Palette,
) -> dict[str, Any]:
    """The edges between cells that are inside and cells that are not, as one line with gaps."""
    i, j = np.nonzero(inside[1:, :] != inside[:-1, :])  # upright edges, at x[i + 1]
    k, m = np.nonzero(inside[:, 1:] != inside[:, :-1])  # level edges, at y[m + 1]
    gap = np.full(len(i) + len(k), np.nan)
    starts = np.concatenate([x[i + 1], x[k]]), np.concatenate([y[j], y[m + 1]])
    ends = np.concatenate([x[i + 1], x[k + 1]]), np.concatenate([y[j + 1], y[m + 1]])
    across, up = (
        np.stack([start, end, gap], axis=1).ravel() for start, end in zip(starts, ends, strict=True)
    )
    return {
        "type": "scatter",
        "mode": "lines",
        "x": typed(across),
        "y": typed(up),
        "line": {"color": colours.edge, "width": 2},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _legend(kinds: list[Category], colours: Palette) -> list[dict[str, Any]]:
    entries = [(f"{kind.glyph} {kind.name}", kind.colour) for kind in kinds]
    entries = entries or [("× broken", colours.broken[1])]
    finite = colours.finite[len(colours.finite) // 2]
    return [legend_entry(name, colour, 12) for name, colour in [("finite", finite), *entries]]


def _narrow(height: int, two: bool, view: View) -> dict[str, Any]:
    """On a phone the colour scales lie below the map."""
    bar = {"orientation": "h", "xanchor": "left", "yanchor": "top", "x": 0, "len": 1, "ypad": 0}
    parts: dict[str, Any] = {
        "height": height + (150 if two else 80),
        "coloraxis": {"colorbar": bar | {"y": -0.2, "title": {"side": "top"}}},
    }
    if two:
        parts["coloraxis2"] = {"colorbar": bar | {"y": -0.36, "title": {"side": "top"}}}
    return parts
