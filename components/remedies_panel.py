"""Remedies panel: what mends this run, proved by trying each remedy from the same seed."""

from __future__ import annotations

import streamlit as st

from models.remedies.proposals import proposals
from models.remedies.result import Result
from models.remedies.trials import Trials
from models.training.history import HistoryView
from models.training.live import RunView

from .desk import Desk, registry
from .figures import health_heatmap
from .figures.compare import alike, losses, parting, total_norms
from .plotly_view import is_dark, plotly_view
from .settings import Settings

REFRESH_SECONDS = 0.7
MOST_ABREAST = 3
HELP = (
    "Tries every remedy by itself, from the same seed and data, for twice as many steps as it took "
    "to break, at least 200."
)
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


def show_trials(settings: Settings, here: Desk) -> None:
    """The table alone, of trials that were begun elsewhere."""
    trials = current(here)
    if trials is not None:
        draw = st.fragment(_show_trials, run_every=REFRESH_SECONDS if trials.running else None)
        draw(settings, trials, trials.running)


def _show_trials(settings: Settings, trials: Trials, running: bool) -> None:
    progress(trials)
    table(settings, trials, applicable=False)
    if trials.running != running:
        st.rerun()


def current(here: Desk) -> Trials | None:
    work = registry().beside(here.key)
    return work if isinstance(work, Trials) else None


def _show(settings: Settings, here: Desk, running: bool) -> None:
    trials, run = current(here), here.run
    view = run.view() if run else None
    if run is None or view is None or (trials is None and not len(view.history.first_step)):
        return
    with st.container(border=True):
        if trials is None:
            offer(settings, here, view)
            return
        header(settings, here, view, trials)
        if trials.running != running:
            st.rerun()
        table(settings, trials)


def offer(settings: Settings, here: Desk, view: RunView) -> None:
    """The button, for a run that broke and for one that somebody suspects."""
    broken = view.first_bad_step is not None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "What mends it?",
            icon=":material/healing:",
            type="primary" if broken else "secondary",
            help=HELP,
            on_click=begin,
            args=(settings, here, view),
            key="remedies/start",
        )
        st.caption(
            "Advice is an experiment here: each remedy is run, and judged by the numbers."
            if broken
            else "Finite so far. Each remedy can be run all the same, to see what it would change."
        )


def header(settings: Settings, here: Desk, view: RunView, trials: Trials) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("#### :material/healing: What mends it?", width="content")
        if trials.running:
            st.button("Stop", icon=":material/stop:", on_click=trials.stop, key="remedies/stop")
        else:
            st.button(
                "Try again",
                icon=":material/science:",
                help=HELP,
                on_click=begin,
                args=(settings, here, view),
                key="remedies/again",
            )
    progress(trials)


def progress(trials: Trials) -> None:
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


def table(settings: Settings, trials: Trials, *, applicable: bool = True) -> None:
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
        selection_mode="multi-row",
        on_select="rerun",
        key=f"{settings.scenario.name}/remedies",
        column_config={
            "remedy": st.column_config.TextColumn(width="medium"),
            "verdict": st.column_config.TextColumn(width="medium"),
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
    selected = [rows[i] for i in chosen["selection"]["rows"] if i < len(rows)]
    if not selected:
        st.caption("Select a row for its evidence, or several to compare them on one clock.")
        return
    if len(selected) == 1 and selected[0] is not untouched:
        evidence(selected[0])
        if applicable:
            apply_button(settings, selected[0])
    compare(settings, untouched, selected)


def evidence(result: Result) -> None:
    """What was found and what was said."""
    st.markdown(f"**{result.title}: {result.verdict}.** {result.reason}")
    proposed = "Proposed by the diagnosis" if result.proposed else "Circulating advice"
    st.caption(f"{proposed}: {result.said}")


def apply_button(settings: Settings, result: Result) -> None:
    """Turns the knobs and has the whole page follow; the run that has them starts by itself."""
    if st.button(
        "Apply",
        icon=":material/check:",
        type="primary",
        help="Sets these knobs and starts the run.",
        key=f"{settings.scenario.name}/apply",
    ):
        settings.turn(dict(result.knobs))
        st.session_state["start_next_run"] = True
        st.rerun()


def compare(settings: Settings, untouched: Result, selected: list[Result]) -> None:
    """Runs side by side, on one clock and with one colour scale."""
    results = [untouched, *(result for result in selected if result is not untouched)]
    with_evidence = [result for result in results if result.evidence is not None]
    histories = {r.title: r.evidence[1] for r in with_evidence if r.evidence is not None}
    if not histories:
        return
    name, dark = settings.scenario.name, is_dark()
    heatmaps = [health_heatmap(history, "applied", dark=dark) for history in histories.values()]
    alike(heatmaps, max(int(history.last_step[-1]) for history in histories.values()))
    columns = st.columns(min(len(histories), MOST_ABREAST))
    for i, (title, figure) in enumerate(zip(histories, heatmaps, strict=True)):
        with columns[i % len(columns)]:
            st.markdown(f"**{title}**")
            st.caption(difference(settings, with_evidence[i], untouched, histories))
            plotly_view(figure, key=f"{name}/compare/{i}", label=f"Gradient health, {title}")
    left, right = st.columns(2)
    with left:
        plotly_view(losses(histories, dark=dark), key=f"{name}/losses", label="Losses")
    with right:
        plotly_view(total_norms(histories, dark=dark), key=f"{name}/total", label="Norms")


def difference(
    settings: Settings, result: Result, untouched: Result, histories: dict[str, HistoryView]
) -> str:
    """Which knobs differ from the untouched run, and from which step on the two are apart."""
    if result is untouched:
        return "the run as it stands"
    scenario = settings.scenario
    knobs = ", ".join(f"{k} = {scenario.knob(k).format(v)}" for k, v in result.knobs.items())
    apart = parting(histories[untouched.title], histories[result.title])
    return f"{knobs}; " + ("never apart" if apart is None else f"apart from step {apart:,} on")


def _step(row: Result) -> str:
    return "finite" if row.first_bad_step is None else f"{row.first_bad_step:,}"


def _fidelity(row: Result) -> str:
    if row.answers_another_question:
        return "another question"
    distance = row.fidelity.distance
    return "–" if distance is None else f"{distance:.1e} ({row.fidelity.parameter})"


def _cost(row: Result) -> str:
    return "–" if row.cost is None else f"{row.cost:.2f} ×"
