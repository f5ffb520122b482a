"""Optimise: the best metric among the settings that stay finite, searched for by Optuna."""

from __future__ import annotations

import streamlit as st

from models.errors import BadInput
from models.sweeps.axes import Axis
from models.sweeps.optimise import MOST_TRIALS, Optimisation, Range, Trial
from models.sweeps.optimising import OptimisationRun
from models.sweeps.work import MapWork

from . import map_cell, run_link
from .figures.map_overlays import Spot, Spots
from .map_settings import MapSettings

TRIALS = 64


def show(settings: MapSettings, work: MapWork) -> None:
    ranges = [found for axis in work.run.sweep.axes if (found := _range(axis)) is not None]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        number = st.number_input(
            "Trials",
            1,
            MOST_TRIALS,
            TRIALS,
            key=f"{settings.scenario.name}/optimise/trials",
            width=160,
        )
        running = work.optimisation is not None and work.optimisation.running
        if running and work.optimisation is not None:
            st.button(
                "Stop",
                icon=":material/stop:",
                on_click=work.optimisation.stop,
                key="map/optimise/stop",
            )
        elif st.button("Optimise", icon=":material/trophy:", key="map/optimise/start"):
            begin(work, tuple(ranges), int(number))
    names = " and ".join(settings.scenario.knob(r.knob).label for r in ranges)
    st.caption(
        f"Makes {settings.scenario.metric} as large as possible over {names or 'no knob'}, within "
        "the ranges of the map; settings that break tell the search where not to look."
    )
    if work.optimisation is not None:
        progress(work.optimisation)
        best(settings, work, work.optimisation)


def _range(axis: Axis) -> Range | None:
    numbers = [v for v in axis.values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) < max(2, len(axis.values)):
        return None
    return Range(axis.knob, float(min(numbers)), float(max(numbers)), axis.log)


def begin(work: MapWork, ranges: tuple[Range, ...], trials: int) -> None:
    sweep = work.run.sweep
    try:
        optimisation = Optimisation(
            sweep.scenario,
            sweep.config,
            ranges,
            steps=sweep.steps,
            seeds=sweep.seeds,
            trials=trials,
            content=sweep.content,
        )
    except BadInput as problem:
        st.error(problem.sentence, icon=":material/error:")
        return
    work.optimisation = OptimisationRun(optimisation)
    st.rerun()  # the page has to refresh while it searches


def progress(run: OptimisationRun) -> None:
    share, told = run.progress
    if run.running:
        st.progress(share, told)
    elif run.status == "failed":
        st.error(f"The search ended early: {run.message}", icon=":material/error:")
    elif run.status == "stopped":
        st.caption(f"Stopped after {told}; they are kept.")


def best(settings: MapSettings, work: MapWork, run: OptimisationRun) -> None:
    trial, sweep = run.best, work.run.sweep
    broken = sum(trial.metric is None for trial in run.trials)
    if trial is None:
        if run.trials:
            st.caption(f"None of {len(run.trials)} trials stayed finite.")
        return
    told = _settings(settings, trial)
    st.markdown(
        f":material/trophy: **Best: {settings.scenario.metric} {trial.metric:.4g}** at {told}; "
        f"{broken} of {len(run.trials)} trials broke."
    )
    config = sweep.config | trial.settings | {"on_bad": "halt"}
    run_link.show(settings, config, "Open this run", own_data=sweep.content is not None)


def _settings(settings: MapSettings, trial: Trial) -> str:
    return ", ".join(
        f"{settings.scenario.knob(name).label} {map_cell.in_words(value)}"
        for name, value in trial.settings.items()
    )


def overlays(work: MapWork, metric: str) -> tuple[Spots, Spots, Spots]:
    """Trials that stayed finite, those that broke, and the best."""
    run, knobs = work.optimisation, [axis.knob for axis in work.run.sweep.axes[:2]]
    trials = run.trials if run else ()
    top = run.best if run else None
    finite = [trial for trial in trials if trial.metric is not None and trial is not top]
    broken = [trial for trial in trials if trial.metric is None]

    def spots(chosen: list[Trial]) -> list[Spot]:
        return [
            Spot(work.run.sweep.config | t.settings, _story(t, metric), t.number) for t in chosen
        ]

    return (
        Spots("trial, finite", spots(finite), knobs, {"symbol": "circle", "size": 8}),
        Spots("trial, broken", spots(broken), knobs, {"symbol": "x", "size": 8}),
        Spots("best trial", spots([top] if top else []), knobs, {"symbol": "star", "size": 18}),
    )


def _story(trial: Trial, metric: str) -> str:
    told = "<br>".join(f"{k} {map_cell.in_words(v)}" for k, v in trial.settings.items())
    if trial.metric is not None:
        end = f"{metric} {trial.metric:.4g}"
    else:
        steps = [run.first_bad_step for run in trial.runs if run.first_bad_step is not None]
        end = f"broke at step {min(steps):,}" if steps else "not finite"
    return f"<b>Trial {trial.number}</b><br>{told}<br>{end}<br>click for its card"
