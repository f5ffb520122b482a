"""Element view: which entries of one parameter's gradient are finite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import streamlit as st

from models.training.live import LiveRun, RunView
from models.training.trainer import Snapshot

from .figures import element_heatmap
from .plotly_view import Click, plotly_view

LATEST = "latest"


@dataclass(frozen=True)
class Chosen:
    """Whose entries are shown, and at which bad step; `LATEST`: at the step that comes next."""

    parameter: str
    moment: int | str


def choose(view: RunView, click: Click | None, name: str) -> Chosen | None:
    """Two fields that a click on the heatmap fills as well; None without a parameter."""
    parameter_key, moment_key = f"{name}/element", f"{name}/moment"
    follow_click(view, click, parameter_key, moment_key)
    bad = [snapshot.step for snapshot in view.snapshots]
    halted = view.status == "halted" and bool(bad)  # the next step is the bad one
    moments: list[int | str] = [*bad] if halted else [LATEST, *bad]
    if st.session_state.get(moment_key) not in moments:
        st.session_state[moment_key] = bad[-1] if halted else LATEST
    parameter = st.selectbox(
        "Entries of",
        view.history.parameters,
        index=None,
        placeholder="Click a cell for its entries",
        key=parameter_key,
        label_visibility="collapsed",
        width=220,
    )
    moment = st.selectbox(
        "at",
        moments,
        key=moment_key,
        format_func=lambda m: "the next step" if m == LATEST else f"bad step {m:,}",
        label_visibility="collapsed",
        width=150,
    )
    return None if parameter is None else Chosen(parameter, moment)


def show(
    run: LiveRun,
    view: RunView,
    chosen: Chosen | None,
    which: Literal["raw", "applied"],
    dark: bool,
) -> None:
    """The entries of the parameter that is chosen."""
    if chosen is None:
        return
    name, parameter = run.scenario.name, chosen.parameter
    snapshot = snapshot_at(view, chosen.moment)
    gradients = run.gradients(snapshot)
    if gradients is None:
        return
    values = getattr(gradients, which)[parameter]
    title = f"{parameter}, {'after clipping' if which == 'applied' else 'raw'}"
    plotly_view(
        element_heatmap(values, title, dark=dark),
        key=f"{name}/elements",
        label=f"Entries of the gradient of {parameter}",
    )


def follow_click(view: RunView, click: Click | None, parameter_key: str, moment_key: str) -> None:
    """A new click on the heatmap chooses its parameter and, on a bad step, that step."""
    serial_key = f"{parameter_key}/click"
    if click is None or click.serial == st.session_state.get(serial_key):
        return
    if click.y in view.history.parameters:
        st.session_state[parameter_key] = click.y
        bad = [s.step for s in view.snapshots if covers(view, click.point[1], s.step)]
        st.session_state[moment_key] = bad[0] if bad else LATEST
    st.session_state[serial_key] = click.serial  # last: a rerun may cut in at each of these


def covers(view: RunView, column: int, step: int) -> bool:
    history = view.history
    if column >= len(history.first_step):
        return False
    return bool(history.first_step[column] <= step <= history.last_step[column])


def snapshot_at(view: RunView, moment: object) -> Snapshot | None:
    return next((s for s in view.snapshots if s.step == moment), None)
