"""Live view: the pictures of a run, refreshed in place while it trains."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from models.scenarios.contract import Curves, Matrix, Outcome
from models.training.headroom import headroom
from models.training.live import LiveRun, RunView, Status
from models.training.warm import warm_up

from . import diagnosis_card, element_view
from .desk import Desk, registry
from .figures import health_heatmap, loss_curve, norm_curves, update_ratio_curves
from .figures.outcome import curves_figure, matrix_figure
from .plotly_view import Click, is_dark, last_click, plotly_view

REFRESH_SECONDS = 0.45
SECONDS_FOR_A_CAUSE = 1.0  # that a refresh waits for it
CROWD = 3  # from as many training runs on, each browser refreshes half as often

Part = Literal["all", "health", "diagnosis", "outcome"]
ACTIVE = ("building", "running", "diagnosing")
STATUS: dict[Status, tuple[str, str, Literal["gray", "blue", "red"]]] = {
    "building": ("Building the graph", ":material/hourglass_top:", "gray"),
    "paused": ("Paused", ":material/pause_circle:", "gray"),
    "running": ("Training", ":material/play_circle:", "blue"),
    "diagnosing": ("Halted; finding the cause", ":material/troubleshoot:", "red"),
    "halted": ("Halted before a non-finite step", ":material/error:", "red"),
    "failed": ("Failed", ":material/dangerous:", "red"),
}


def show(desk: Desk, part: Part = "all") -> None:
    """Draw the run of this desk, or a part of it; while it trains or is built, again every
    `REFRESH_SECONDS`."""
    run = desk.run
    live = run is not None and run.status in ACTIVE
    seconds = REFRESH_SECONDS * (2 if registry().running >= CROWD else 1)
    st.fragment(_show, run_every=seconds if live else None)(desk, live, part)


def _show(desk: Desk, live: bool, part: Part) -> None:
    run = desk.run
    view = run.view() if run else None
    if run is not None and view is None and run.status == "failed":
        st.error(f"The graph could not be built: {run.error}", icon=":material/dangerous:")
        return
    if run is None or view is None:
        warm_up()
        because = f"{run.because} " if run and run.because else ""
        st.info(
            f"{because}The graph is being built; training starts in a moment.",
            icon=":material/sync:",
        )
        return
    if live != (view.status in ACTIVE):
        st.rerun()  # training ended by itself: buttons and refresh have to follow
    draw(run, view, part)
    # The cause is shown as soon as it is found, and no refresh in between slows the search down.
    searching = view.status == "diagnosing" or run.looking
    if run.wait_for_finding(view.findings, SECONDS_FOR_A_CAUSE if searching else 0):
        st.rerun()
    if run.looking and not live:
        st.rerun()  # it takes longer: refresh has to begin


def draw(run: LiveRun, view: RunView, part: Part = "all") -> None:
    """The pictures of one moment of a run."""
    name, dark = run.scenario.name, is_dark()
    status_line(view, str(run.config["dtype"]), run.because)
    if part in ("all", "health", "outcome"):
        health(run, view, dark)  # above what comes and goes: it stays where it is
    if part in ("all", "diagnosis"):
        diagnosis_card.show(run, view, dark)
    if part == "all":
        charts(view, name, dark)
    elif part == "outcome" and view.outcome is not None:
        show_outcome(view.outcome, name, dark)


def health(run: LiveRun, view: RunView, dark: bool) -> None:
    """The heatmap of parameters × steps, and the entries of the cell that is clicked."""
    name = run.scenario.name
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Gradient health**, parameters × steps", width="content")
        st.segmented_control(
            "Gradients",
            ["raw", "applied"],
            default="raw",
            required=True,
            key=f"{name}/which",
            format_func={"raw": "raw", "applied": "after clipping"}.__getitem__,
            label_visibility="collapsed",
        )
        chosen = element_view.choose(view, last_click(f"{name}/heatmap"), name)
    which = which_gradients(name)
    plotly_view(
        health_heatmap(view.history, which, dark=dark),
        key=f"{name}/heatmap",
        label=f"Gradient health over the steps: {summary(view)}",
    )
    element_view.show(run, view, chosen, which, dark)


def which_gradients(name: str) -> Literal["raw", "applied"]:
    return "applied" if st.session_state.get(f"{name}/which") == "applied" else "raw"


def status_line(view: RunView, dtype: str, because: str) -> None:
    words, icon, colour = STATUS[view.status]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(words, icon=icon, color=colour)
        if because:  # not a toast: that goes with the next run of the page
            st.caption(f":material/restart_alt: {because}", width="content")
        if view.message:
            st.markdown(f"`{view.message}`")
        if view.rescaled_steps:
            st.markdown(
                f"Loss scale {view.loss_scale:,.6g}; {view.rescaled_steps:,} overflows skipped, "
                "which is normal."
            )
    total = len(view.history.parameters)
    with st.container(horizontal=True):
        st.metric("Step", f"{view.step:,}", border=True)
        st.metric("Loss", "–" if view.loss is None else f"{view.loss:.5g}", border=True)
        st.metric("Steps per second", f"{view.steps_per_second:,.0f}", border=True)
        st.metric("Finite parameters", f"{view.finite} of {total}", border=True)
        first = view.first_bad_step
        st.metric("First bad step", "none" if first is None else f"{first:,}", border=True)
    outlook(view, dtype)


def outlook(view: RunView, dtype: str) -> None:
    """How far the gradients are from overflow; a warning only where they steadily approach it."""
    room = headroom(view.history, dtype)
    if room is None or view.first_bad_step is not None:
        return
    words = f"Headroom: 10^{room.factors:.0f} until {room.parameter} overflows {dtype}"
    if room.steps_left is None or room.per_step is None:
        st.caption(f"{words}; no trend towards it.")
    else:
        st.warning(
            f"{words}. It grows by 10^{room.per_step:.2g} a step: at this rate it overflows in "
            f"about {room.steps_left:,} steps.",
            icon=":material/trending_up:",
        )


def summary(view: RunView) -> str:
    total = len(view.history.parameters)
    return f"at step {view.step:,}, {view.finite} of {total} parameters have finite gradients"


def charts(view: RunView, name: str, dark: bool) -> None:
    which = which_gradients(name)
    left, right = st.columns(2)
    with left:
        titled("Loss", loss_curve(view.history, dark=dark), f"{name}/loss", "Loss over the steps")
        titled(
            "Update / weight",
            update_ratio_curves(view.history, dark=dark),
            f"{name}/ratio",
            "Norm of the update over norm of the weights, per parameter",
        )
    with right:
        titled(
            "Gradient norm",
            norm_curves(view.history, which, dark=dark),
            f"{name}/norms",
            "Norm of the gradient, per parameter",
        )
        if view.outcome is not None:
            show_outcome(view.outcome, name, dark)


def show_outcome(outcome: Outcome, name: str, dark: bool) -> None:
    metrics = ", ".join(f"{label} {value:.3f}" for label, value in outcome.metrics.items())
    for i, panel in enumerate(outcome.panels):
        title = f"{panel.title} — {metrics}"
        if isinstance(panel, Curves):
            titled(title, curves_figure(panel, dark=dark), f"{name}/panel{i}", panel.title)
        elif isinstance(panel, Matrix):
            titled(title, matrix_figure(panel, dark=dark), f"{name}/panel{i}", panel.title)
        else:
            st.markdown(f"**{title}**")
            marks = ["✓" if good else "✗" for good in panel.good]
            columns = dict(zip(panel.columns, zip(*panel.rows, strict=True), strict=True))
            st.dataframe({"": marks, **columns}, hide_index=True, height=320)


def titled(title: str, figure: dict[str, Any], key: str, label: str) -> Click | None:
    st.markdown(f"**{title}**")
    return plotly_view(figure, key=key, label=label)
