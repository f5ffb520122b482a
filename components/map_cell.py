"""The card of a chosen cell or trial: its settings, its runs by seed, and a way into each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from models.scenarios.knobs import KnobValue, format_number
from models.sweeps.optimise import Trial
from models.sweeps.plan import Sweep, Task
from models.sweeps.results import RunResult
from models.sweeps.work import MapWork

from . import run_link
from .map_choice import MapChoice
from .map_settings import MapSettings


def show(settings: MapSettings, work: MapWork, choice: MapChoice) -> None:
    sweep, trial = work.run.sweep, chosen_trial(work, choice)
    if trial is not None:
        with st.container(border=True):
            heading(settings, trial.settings, trial.runs, f"Trial {trial.number}", sweep.steps)
            runs(settings, sweep, trial.settings, trial.runs)
        return
    if choice.cell is None:
        st.caption(
            ":material/ads_click: Click a cell for its settings, its runs and a way into each."
        )
        return
    cell = sweep.settings(choice.cell)
    tasks = [Task(choice.cell, seed) for seed in sweep.seed_numbers()]
    results = work.run.view().results
    known = tuple(results[task] for task in tasks if task in results)
    with st.container(border=True):
        heading(settings, cell, known, "Cell", sweep.steps)
        if known:
            runs(settings, sweep, cell, known)
        else:
            st.caption("Not computed yet; this card fills when it is.")


def chosen_trial(work: MapWork, choice: MapChoice) -> Trial | None:
    trials = work.optimisation.trials if work.optimisation else ()
    return next((trial for trial in trials if trial.number == choice.trial), None)


def heading(
    settings: MapSettings,
    values: Mapping[str, KnobValue],
    results: Sequence[RunResult],
    what: str,
    steps: int,
) -> None:
    labels = {name: settings.scenario.knob(name).label for name in values}
    told = ", ".join(f"{labels[name]} = {in_words(value)}" for name, value in values.items())
    st.markdown(f"**{what}: {told}**")
    broken = [result for result in results if result.first_bad_step is not None]
    if not results:
        return
    if not broken:
        st.badge(f"Finite for all {steps:,} steps", icon=":material/check_circle:", color="blue")
        return
    first = min(broken, key=lambda result: result.first_bad_step or 0)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(f"Broke at step {first.first_bad_step:,}", icon=":material/error:", color="red")
        st.badge(first.mechanism, icon=":material/bolt:", color="red")
        if len(results) > 1:
            st.markdown(f"{len(broken)} of {len(results)} seeds broke")


def runs(
    settings: MapSettings,
    sweep: Sweep,
    values: Mapping[str, KnobValue],
    results: Sequence[RunResult],
) -> None:
    """A row a seed, and a link for each."""
    st.dataframe(
        {
            "seed": [result.task.seed for result in results],
            "first bad step": [_step(result) for result in results],
            "mechanism": [_mechanism(result) for result in results],
            "parameters that broke first": [", ".join(result.broke_first) for result in results],
            "loss at the end": [f"{result.loss:.4g}" for result in results],
            settings.scenario.metric: [f"{result.metric:.3f}" for result in results],
        },
        hide_index=True,
        column_config={
            "mechanism": st.column_config.TextColumn(
                help="“alike”: not this very step was replayed, but another in which the same "
                "gradients broke in the same structure."
            ),
            "parameters that broke first": st.column_config.TextColumn(width="large"),
        },
    )
    with st.container(horizontal=True):
        for result in results:
            if not result.failed:
                config = sweep.config | dict(values)
                config |= {"seed": result.task.seed, "on_bad": "halt"}
                name = "Open this run" if len(results) == 1 else f"Open seed {result.task.seed}"
                run_link.show(settings, config, name, own_data=sweep.content is not None)


def _step(result: RunResult) -> str:
    if result.failed:
        return f"failed: {result.failed}"
    return "finite" if result.first_bad_step is None else f"{result.first_bad_step:,}"


def _mechanism(result: RunResult) -> str:
    if not result.mechanism:
        return "–"
    return result.mechanism if result.replayed else f"{result.mechanism} (alike)"


def in_words(value: KnobValue) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (int, float)):
        return format_number(float(f"{value:.4g}"))
    return ", ".join(map(format_number, value)) if isinstance(value, tuple) else value
