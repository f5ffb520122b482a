"""Diagnosis card: why a step is not finite, where, with which numbers, and what to change."""

from __future__ import annotations

import linecache
from pathlib import Path

import streamlit as st

from models.diagnosis.report import Diagnosis, Origin
from models.training.headroom import RANGES
from models.training.health import MAX_ABS
from models.training.live import Finding, LiveRun, RunView

from .figures.lens import range_figure
from .figures.outcome import curves_figure
from .figures.path_picture import path_picture, stops
from .figures.through_time import growth, through_time
from .plotly_view import plotly_view

CONTEXT = 3  # source lines above and below the one that is named


def show(run: LiveRun, view: RunView, dark: bool) -> None:
    """The diagnosis of the bad step that is chosen; without one, of the step that was asked for."""
    bad = {snapshot.step: snapshot for snapshot in view.snapshots}
    steps = sorted(bad.keys() | view.findings.keys())
    if not steps:
        if view.status == "paused":
            st.button(
                "Examine the next step",
                icon=":material/troubleshoot:",
                type="tertiary",
                help="Replays it operation by operation and lists what is not finite in it.",
                on_click=run.examine,
                key=f"{run.scenario.name}/examine",
            )
        return
    with st.container(border=True):
        step = choose_step(steps, run.scenario.name)
        finding, snapshot = view.findings.get(step), bad.get(step)
        if finding is not None and snapshot in (None, finding.snapshot):
            draw(finding, run, view, dark)
            return
        st.info(f"Step {step:,} is being replayed, operation by operation.", icon=":material/sync:")
        if snapshot is not None and view.status != "diagnosing":
            run.look_into(snapshot)


def choose_step(steps: list[int], name: str) -> int:
    """Heading, and where several steps can be looked into, which of them is shown."""
    heading = "#### :material/troubleshoot: Diagnosis"
    if len(steps) == 1:
        st.markdown(f"{heading} of step {steps[0]:,}")
        return steps[0]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(heading, width="content")
        key = f"{name}/diagnosed"
        if st.session_state.get(key) not in steps:
            st.session_state[key] = steps[0]
        return st.selectbox(
            "Step",
            steps,
            key=key,
            format_func=lambda step: f"of step {step:,}",
            label_visibility="collapsed",
            width=200,
        )


def draw(finding: Finding, run: LiveRun, view: RunView, dark: bool) -> None:
    diagnosis, name = finding.diagnosis, run.scenario.name
    st.markdown(f"**{diagnosis.explanation}**")
    if not diagnosis.origins:
        if diagnosis.benign:
            with st.expander(f"Harmless non-finite values ({len(diagnosis.benign)})"):
                harmless(diagnosis)
        return
    origin = diagnosis.origins[0]
    if len(diagnosis.origins) > 1:
        number = st.segmented_control(
            "Origins, strongest first",
            range(len(diagnosis.origins)),
            default=0,
            required=True,
            format_func=lambda i: f"{i + 1}. {diagnosis.origins[i].op}",
            key=f"{name}/origin",
        )
        origin = diagnosis.origins[number]
    first = view.first_bad_step
    if origin.mechanism == "bad-parameter" and first is not None:
        st.markdown(f"It was carried on at step {first:,}: that update made the parameter so.")
    left, right = st.columns([3, 2])
    with left:
        chips(origin)
        source(origin)
    with right:
        numbers(origin)
        reach(origin, diagnosis)
    labels = ["What to change", "Path", "Numbers lens"]
    if finding.through_time:
        labels.insert(1, "Through time")
    if diagnosis.benign:
        labels.append(f"Harmless ({len(diagnosis.benign)})")
    tabs = dict(zip(labels, st.tabs(labels), strict=True))
    with tabs["What to change"]:
        st.markdown("\n".join(f"- {text}" for text in diagnosis.remedies))
    if finding.through_time:
        with tabs["Through time"]:
            time_picture(finding, name, dark)
    with tabs["Path"]:
        path(origin, name, dark)
    with tabs["Numbers lens"]:
        lens(finding, view, name, dark)
    if diagnosis.benign:
        with tabs[labels[-1]]:
            harmless(diagnosis)


def harmless(diagnosis: Diagnosis) -> None:
    st.markdown("Not finite, but neither the loss nor a gradient takes it in:")
    st.markdown("\n".join(f"- `{o.op}` at {place(o)}" for o in diagnosis.benign))


def chips(origin: Origin) -> None:
    with st.container(horizontal=True):
        st.badge(origin.op, icon=":material/function:", color="blue")
        st.badge(origin.phase, color="gray")
        st.badge(origin.mechanism, icon=":material/bolt:", color="red")
        for circumstance in origin.circumstances:
            st.badge(circumstance, icon=":material/visibility_off:", color="orange")


def source(origin: Origin) -> None:
    """The line in its context; the line itself carries an arrow."""
    if origin.source is None:
        st.caption("No source line is known for this operation.")
        return
    file, line = origin.source.file, origin.source.line
    lines = []
    for number in range(max(1, line - CONTEXT), line + CONTEXT + 1):
        text = linecache.getline(file, number).rstrip("\n")
        if text or number <= line:
            lines.append(f"{'→' if number == line else ' '} {number:4} {text}")
    st.caption(f"{Path(file).name}, line {line}")
    st.code("\n".join(lines), language="python")


def numbers(origin: Origin) -> None:
    """The numbers that met at the first offending element."""
    index = ", ".join(map(str, origin.index))
    what = f"`{origin.op}` at [{index}]" if origin.index else f"`{origin.op}`"
    rows = [f"| input {i + 1} | `{_number(value)}` |" for i, value in enumerate(origin.inputs)]
    rows.append(f"| output | **`{_number(origin.output)}`** |")
    st.markdown(
        f"{what}, {origin.count:,} of {origin.size:,} elements\n\n| | value |\n|---|---|\n"
        + "\n".join(rows)
    )


def reach(origin: Origin, diagnosis: Diagnosis) -> None:
    reached = [name for name in origin.reaches if name != "loss"]
    st.markdown(f"Reaches {len(reached)}: {_listed(reached)}" if reached else "Reaches the loss.")
    if diagnosis.spared:
        reasons = (f"- {_listed(names)}: {why}" for why, names in diagnosis.by_reason().items())
        st.markdown("\n".join([f"Spares {len(diagnosis.spared)}, whose gradient", "", *reasons]))


def path(origin: Origin, name: str, dark: bool) -> None:
    chain = stops(origin)
    if not chain:
        st.caption("The way is a single operation.")
        return
    if origin.growth is not None:
        grown = origin.growth
        st.markdown(
            f"Before it, the gradient passed line {grown.line} {len(grown.log10)} times and grew "
            f"{grown.factor:.3g}-fold at each pass."
        )
    click = plotly_view(
        path_picture(chain, origin.reaches, dark=dark),
        key=f"{name}/path",
        label=f"Path from {origin.op} to {len(origin.reaches)} parameters",
    )
    chosen = click.point[0] if click and click.curve == 0 else 0
    if chosen < len(chain):
        stop = chain[chosen]
        st.caption(f"{stop.place}, {stop.phase}; click another stop for its numbers")
        st.dataframe(
            {
                "operation": [step.op for step in stop.steps],
                "times": [step.repeats for step in stop.steps],
                "inputs there": [", ".join(map(_number, step.inputs)) for step in stop.steps],
                "NaN": [step.nan for step in stop.steps],
                "Inf": [step.inf for step in stop.steps],
                "of": [step.size for step in stop.steps],
                "largest finite": [f"{step.largest:.4g}" for step in stop.steps],
            },
            hide_index=True,
        )


def time_picture(finding: Finding, name: str, dark: bool) -> None:
    limit = RANGES[str(finding.snapshot.config["dtype"])][2]
    factor, leaves = growth(finding.through_time)
    *_, last = finding.through_time
    text = f"On the way back the gradient changes {factor:.3g}-fold a step on average"
    if leaves:
        text += f" and leaves {finding.snapshot.config['dtype']} at **{leaves}**"
        if not leaves.startswith(last):
            text += f": the {last} is passed first and stays finite; what lies before it breaks"
    st.markdown(text + ".")
    plotly_view(
        through_time(finding.through_time, limit, dark=dark),
        key=f"{name}/through-time",
        label=text,
    )


def lens(finding: Finding, view: RunView, name: str, dark: bool) -> None:
    dtype = str(finding.snapshot.config["dtype"])
    largest = view.raw[:, MAX_ABS]
    nearest = int(largest.argmax())
    for i, panel in enumerate(view.outcome.lens if view.outcome else ()):
        st.markdown(f"**{panel.title}**")
        plotly_view(curves_figure(panel, dark=dark), key=f"{name}/lens{i}", label=panel.title)
    plotly_view(
        range_figure(dtype, float(largest[nearest]), view.history.parameters[nearest], dark=dark),
        key=f"{name}/range",
        label=f"Range of {dtype} and the largest finite gradient",
    )


def place(origin: Origin) -> str:
    return str(origin.source) if origin.source else "an unknown line"


def _number(value: object) -> str:
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
