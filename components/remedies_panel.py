"""Remedies panel: what mends this run, proved by trying each remedy from the same seed."""

from __future__ import annotations

import streamlit as st

from models.remedies.proposals import proposals
from models.remedies.result import Result
from models.remedies.trials import Trials
from models.training.live import RunView

from .desk import Desk, registry
from .figures import health_heatmap
from .plotly_view import is_dark, plotly_view
from .settings import Settings

REFRESH_SECONDS = 0.7
SIGNS = {
    "mends": "✓ mends",
    "mends but distorts the gradient": "≈ mends, distorts",
    "only delays": "… only delays",
    "hides it (zero gradient)": "○ hides it",
    "does nothing": "✗ does nothing",
    "makes it worse": "✗✗ makes it worse",
    "could not be tried": "? could not be tried",
}


def show(settings: Settings, here: Desk) -> None:
    """The button, and once it was pressed the table, filling while trials run."""
    trials = current(here)
    running = trials is not None and trials.running
    st.fragment(_show, run_every=REFRESH_SECONDS if running else None)(settings, here, running)


def current(here: Desk) -> Trials | None:
    work = registry().beside(here.key)
    return work if isinstance(work, Trials) else None


def _show(settings: Settings, here: Desk, running: bool) -> None:
    trials, run = current(here), here.run
    view = run.view() if run else None
    if run is None or view is None or (trials is None and view.first_bad_step is None):
        return
    with st.container(border=True):
        header(settings, here, view, trials)
        if trials is None:
            return
        if trials.running != running:
            st.rerun()
        table(settings, trials)


def header(settings: Settings, here: Desk, view: RunView, trials: Trials | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("#### :material/healing: What mends it?")
        if trials is not None and trials.running:
            st.button("Stop", icon=":material/stop:", on_click=trials.stop, key="remedies/stop")
        else:
            st.button(
                "Try every remedy" if trials is None else "Try again",
                icon=":material/science:",
                type="primary" if trials is None else "secondary",
                help="Runs each remedy by itself from the same seed and data, for twice as many "
                "steps as it took to break, at least 200.",
                on_click=begin,
                args=(settings, here, view),
                key="remedies/start",
            )
    if trials is None:
        st.caption("Advice is an experiment here: each remedy is run, and judged by the numbers.")
        return
    done, total = trials.progress
    if trials.running:
        now = f", now {' and '.join(trials.now)}" if trials.now else ""
        st.progress(done / max(total, 1), f"{done} of {total} tried{now}")
    elif done < total:
        st.caption(f"Stopped: {done} of {total} were tried.")
    if trials.error:
        st.error(f"The trials ended early: {trials.error}", icon=":material/error:")


def begin(settings: Settings, here: Desk, view: RunView) -> None:
    run = here.run
    if run is None:
        return
    run.pause()
    found = [finding.diagnosis for finding in view.findings.values()]
    proposed = proposals(run.scenario, found[0]) if found else []
    trials = Trials(run.scenario, run.config, run.dataset, content=run.content, proposed=proposed)
    registry().put_beside(here.key, trials)
    trials.start()


def table(settings: Settings, trials: Trials) -> None:
    untouched, results = trials.untouched, trials.results
    if untouched is None:
        return
    rows = [untouched, *results]
    chosen = st.dataframe(
        {
            "remedy": [row.title for row in rows],
            "verdict": ["as it stands", *(SIGNS[row.verdict] for row in results)],
            "first bad step": [_step(row) for row in rows],
            "loss at the end": [f"{row.loss:.4g}" for row in rows],
            rows[0].metric_name or "metric": [f"{row.metric:.3f}" for row in rows],
            "gradient off by": [_fidelity(row) for row in rows],
            "cost per step": ["1 ×", *(_cost(row) for row in results)],
            "why": [row.reason for row in rows],
        },
        hide_index=True,
        selection_mode="single-row",
        on_select="rerun",
        key=f"{settings.scenario.name}/remedies",
        column_config={
            "first bad step": st.column_config.TextColumn(help="“finite”: none in all its steps"),
            "gradient off by": st.column_config.TextColumn(
                help="Relative distance of its gradient from the float64 reference of the same "
                "mathematical loss, at the state before the bad step; the worst parameter."
            ),
            "cost per step": st.column_config.TextColumn(
                help="Seconds of a step relative to the run as it stands."
            ),
            "why": st.column_config.TextColumn(width="large"),
        },
    )
    selected = chosen["selection"]["rows"]
    if not selected:
        st.caption("Select a row for its evidence.")
    elif 0 < selected[0] < len(rows):
        evidence(settings, rows[selected[0]])


def evidence(settings: Settings, result: Result) -> None:
    """Two small heatmaps side by side, what was said and what was found, and a way to apply it."""
    name, dark = settings.scenario.name, is_dark()
    st.markdown(f"**{result.title}: {result.verdict}.** {result.reason}")
    proposed = "Proposed by the diagnosis" if result.proposed else "Circulating advice"
    st.caption(f"{proposed}: {result.said}")
    if result.evidence is not None:
        titles = ("As it stands", result.title)
        for column, title, history in zip(st.columns(2), titles, result.evidence, strict=True):
            with column:
                st.markdown(f"**{title}**")
                plotly_view(
                    health_heatmap(history, "applied", dark=dark),
                    key=f"{name}/evidence/{title}",
                    label=f"Gradient health, {title}",
                )
    st.button(
        "Apply",
        icon=":material/check:",
        type="primary",
        help="Sets these knobs and starts the run.",
        on_click=apply,
        args=(settings, result),
        key=f"{name}/apply",
    )


def apply(settings: Settings, result: Result) -> None:
    """Turn the knobs; the run that follows starts by itself."""
    settings.turn(dict(result.knobs))
    st.session_state["start_next_run"] = True


def _step(row: Result) -> str:
    return "finite" if row.first_bad_step is None else f"{row.first_bad_step:,}"


def _fidelity(row: Result) -> str:
    if row.answers_another_question:
        return "another question"
    distance = row.fidelity.distance
    return "–" if distance is None else f"{distance:.1e} ({row.fidelity.parameter})"


def _cost(row: Result) -> str:
    return "–" if row.cost is None else f"{row.cost:.2f} ×"
