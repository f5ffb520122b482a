"""The map as it fills, and what can be done with it; refreshed in place while anything runs."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from models.scenarios.knobs import format_number
from models.sweeps.grid import Grid, grid
from models.sweeps.running import SweepView
from models.sweeps.work import MapWork

from . import map_boundary, map_cell, map_download, map_line, map_optimise
from .desk import MapDesk, registry
from .figures.map_axes import DrawnAxis
from .figures.map_overlays import Chosen
from .figures.stability_map import Map, View, stability_map
from .live_view import CROWD
from .map_choice import MapChoice
from .map_settings import VIEWS, MapSettings
from .plotly_view import is_dark, plotly_view
from .settings import write_query

REFRESH_SECONDS = 0.6
STATUS: dict[str, tuple[str, str, Literal["gray", "blue", "green", "red"]]] = {
    "ready": ("Not begun", ":material/hourglass_empty:", "gray"),
    "running": ("Computing", ":material/play_circle:", "blue"),
    "stopped": ("Stopped", ":material/pause_circle:", "gray"),
    "done": ("Complete", ":material/check_circle:", "green"),
    "failed": ("Failed", ":material/dangerous:", "red"),
}
TOOLS = {
    "cell": ":material/ads_click: Cell",
    "line": ":material/show_chart: Line",
    "boundary": ":material/border_outer: Boundary",
    "optimise": ":material/trophy: Optimise",
    "download": ":material/download: Download",
}


def show(settings: MapSettings, here: MapDesk) -> None:
    work = here.run
    if work is None:
        empty(settings)
        return
    active = work.active
    crowded = registry().running >= CROWD
    seconds = REFRESH_SECONDS * (2 if crowded else 1)
    st.fragment(_show, run_every=seconds if active else None)(settings, here, active)


def empty(settings: MapSettings) -> None:
    """What will stand here."""
    axes = " and ".join(settings.scenario.knob(axis.knob).label for axis in settings.axes)
    with st.container(border=True):
        st.markdown("#### :material/grid_on: No map yet")
        st.markdown(
            f"Every cell will be one training run of **{settings.scenario.title}** with its own "
            f"**{axes}**. Blue cells stay finite to the last step and show their loss; warm cells "
            "with a cross break, the yellower the later. A coarse map comes first, then it gets "
            "finer."
        )
        st.markdown("Press **Compute the map** to begin.")


def _show(settings: MapSettings, here: MapDesk, active: bool) -> None:
    work = here.run
    if work is None:
        st.rerun()
    view = work.run.view()
    status_line(settings, work, view)
    draw(settings, work, view)
    if active != work.active:
        st.rerun()  # it ended by itself: buttons and refresh have to follow


def status_line(settings: MapSettings, work: MapWork, view: SweepView) -> None:
    words, icon, colour = STATUS[view.status]
    told = f"{len(view.results):,} of {view.runs:,} runs"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(words, icon=icon, color=colour)
        sweep = work.run.sweep
        seeds = "1 seed" if sweep.seeds == 1 else f"{sweep.seeds} seeds"
        took = f", {view.seconds:,.0f} s" if view.status == "done" else ""
        st.markdown(f"{told} · {sweep.steps:,} steps, {seeds}{took}")
    if view.status != "done":
        left = "" if view.seconds_left is None else f"about {_duration(view.seconds_left)} left"
        st.progress(min(view.done, 1.0), left if view.status == "running" else "")
    if view.message:
        st.error(
            f"{view.message} What was computed is kept; Resume goes on from there.",
            icon=":material/cloud_off:",
        )
    if work.run.sweep.config != settings.config or _axes(work) != _chosen_axes(settings):
        st.caption(
            ":material/info: The controls have been moved since; this map is of the settings "
            "before. “Compute the map” replaces it."
        )


def _axes(work: MapWork) -> list[Any]:
    return [(axis.knob, axis.values) for axis in work.run.sweep.axes]


def _chosen_axes(settings: MapSettings) -> list[Any]:
    try:
        return [(axis.knob, axis.values) for axis in settings.sweep().axes]
    except ValueError:
        return []


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def draw(settings: MapSettings, work: MapWork, view: SweepView) -> None:
    """The map, the choice of what it shows, and the tool that is chosen."""
    sweep, name = work.run.sweep, settings.scenario.name
    whole = grid(sweep, view)
    choice = MapChoice.of(name, sweep)
    shown = choose_view(settings, work)
    third = choose_layer(settings, work)
    tool = st.session_state.get(f"{name}/map/tool", "cell")
    drawn = picture(settings, work, whole, third)
    choice.follow(f"{name}/map/figure", drawn.overlays, tool, third)
    if choice.cell is not None or choice.line:
        drawn = picture(settings, work, whole, third)
    plotly_view(
        stability_map(drawn, shown, dark=is_dark()),
        key=f"{name}/map/figure",
        label=summary(settings, whole),
        download=choice.download,
    )
    st.segmented_control(
        "Tool",
        list(TOOLS),
        default="cell",
        required=True,
        format_func=TOOLS.__getitem__,
        key=f"{name}/map/tool",
        label_visibility="collapsed",
    )
    if tool == "cell":
        map_cell.show(settings, work, choice)
    elif tool == "line":
        map_line.show(drawn, choice, is_dark())
    elif tool == "boundary":
        map_boundary.show(settings, work)
    elif tool == "optimise":
        map_optimise.show(settings, work)
    else:
        map_download.show(work, choice, name)


def choose_view(settings: MapSettings, work: MapWork) -> View:
    words = {
        "loss": "Loss",
        "metric": metric_name(settings).capitalize(),
        "mechanism": "Mechanism",
        "parameters": "Parameters",
        "seeds": "Seeds broken",
    }
    options = [view for view in VIEWS if view != "seeds" or work.run.sweep.seeds > 1]
    chosen = st.segmented_control(
        "Coloured by",
        options,
        default=settings.view if settings.view in options else options[0],
        required=True,
        format_func=words.__getitem__,
        key=f"{settings.scenario.name}/map/view/{len(options)}",
        label_visibility="collapsed",
        help="Finite cells by loss or metric and broken ones by the step that broke them; or "
        "broken cells by mechanism, by the parameters whose gradient broke first, or by how many "
        "of the seeds broke.",
    )
    if chosen != settings.view:
        settings.view = chosen
        write_query(settings)
    return chosen  # type: ignore[return-value]


def choose_layer(settings: MapSettings, work: MapWork) -> int:
    """The place on the third axis that is shown; 0 without one."""
    axes = work.run.sweep.axes
    if len(axes) < 3:
        return 0
    axis = axes[2]
    if len(axis.values) == 1:
        return 0
    knob = settings.scenario.knob(axis.knob)
    return int(
        st.select_slider(
            f"{knob.label} ({knob.name})",
            range(len(axis.values)),
            format_func=lambda i: _number(axis.values[i]),
            key=f"{settings.scenario.name}/map/layer/{axis.knob}/{len(axis.values)}",
        )
    )


def picture(settings: MapSettings, work: MapWork, whole: Grid, third: int) -> Map:
    sweep, name = work.run.sweep, settings.scenario.name
    x = DrawnAxis.of(sweep.axes[0], label(settings, sweep.axes[0].knob))
    y = DrawnAxis.of_list("", ("",))
    if len(sweep.axes) > 1:
        y = DrawnAxis.of(sweep.axes[1], label(settings, sweep.axes[1].knob))
    choice = MapChoice.of(name, sweep)
    overlays = (
        Chosen(choice.flat_cell(third), choice.line_ends),
        map_boundary.overlay(work),
        *map_optimise.overlays(work, metric_name(settings)),
    )
    return Map(whole.flat(third), x, y, sweep.steps, sweep.seeds, metric_name(settings), overlays)


def label(settings: MapSettings, knob: str) -> str:
    found = settings.scenario.knob(knob)
    unit = getattr(found, "unit", "")
    return f"{found.label} ({unit})" if unit else found.label


def metric_name(settings: MapSettings) -> str:
    return settings.scenario.metric


def summary(settings: MapSettings, whole: Grid) -> str:
    counts = [int((whole.state == code).sum()) for code in (1, 2, 3)]
    axes = " and ".join(axis.knob for axis in settings.axes)
    return (
        f"Stability map over {axes}: {counts[0]} cells finite, {counts[1]} broken, "
        f"{counts[2]} failed, {whole.state.size - sum(counts)} not computed yet"
    )


def _number(value: Any) -> str:
    return format_number(value) if type(value) in (int, float) else str(value)
