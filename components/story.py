"""Story: a scenario told in a few screens, for a lecture; a real run is behind each of them."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from models.remedies.trials import Trials
from models.scenarios import scenario as scenario_named
from models.scenarios import scenarios
from models.scenarios.contract import Scenario, Screen
from models.training.live import LiveRun

from . import live_view, remedies_panel
from .desk import Desk, desk, registry, tab_name
from .settings import Settings


def show() -> None:
    """The screen that the URL names, with buttons (and arrow keys) to the next and the last."""
    turned: list[tuple[str, int]] = st.session_state.setdefault("story/turned", [])
    if turned:
        go(*turned[-1])
        turned.clear()
    scenario, number = place()
    screen = scenario.screens[number]
    tab = tab_name()
    choose(scenario)
    st.progress((number + 1) / len(scenario.screens), f"{number + 1} of {len(scenario.screens)}")
    st.title(screen.title)
    st.markdown(f"##### {screen.text}")
    turn(scenario, number, turned)
    if tab is None:
        return
    here = desk(tab, f"{scenario.name}/story")
    run = run_of(here, scenario, screen)
    if screen.shows == "remedies":
        trials_of(here, run, screen)
        settings = Settings(scenario, screen.preset, run.config)
        remedies_panel.show_trials(settings, here)
    else:
        live_view.show(here, screen.shows)


def place() -> tuple[Scenario, int]:
    """Scenario and screen number (from 0) of the URL; the first where it names none."""
    told = {name: s for name, s in scenarios().items() if s.screens}
    name = st.query_params.get("scenario", "")
    scenario = scenario_named(name) if name in told else next(iter(told.values()))
    text = st.query_params.get("screen", "1")
    number = int(text) - 1 if text.isdecimal() else 0
    return scenario, min(max(number, 0), len(scenario.screens) - 1)


def choose(scenario: Scenario) -> None:
    names = [name for name, s in scenarios().items() if s.screens]
    chosen = st.segmented_control(
        "Story",
        names,
        default=scenario.name,
        required=True,
        format_func=lambda name: scenarios()[name].title,
        key=f"story/{scenario.name}",
        label_visibility="collapsed",
    )
    if chosen != scenario.name:
        go(chosen, 0)
        st.rerun()


def turn(scenario: Scenario, number: int, turned: list[tuple[str, int]]) -> None:
    """Buttons that say where to go; the page goes there when it runs (see `Settings`)."""
    with st.container(horizontal=True):
        st.button(
            "Back",
            icon=":material/arrow_back:",
            shortcut="Left",
            disabled=number == 0,
            on_click=turned.append,
            args=((scenario.name, number - 1),),
        )
        st.button(
            "Next",
            icon=":material/arrow_forward:",
            icon_position="right",
            shortcut="Right",
            type="primary",
            disabled=number == len(scenario.screens) - 1,
            on_click=turned.append,
            args=((scenario.name, number + 1),),
        )


def go(name: str, number: int) -> None:
    st.query_params.from_dict({"scenario": name, "screen": str(number + 1)})


def run_of(here: Desk, scenario: Scenario, screen: Screen) -> LiveRun:
    """The run behind the screen: the one at the desk if it has the screen's knobs, else a new one,
    which starts at once."""
    config = scenario.config(screen.preset, dict(screen.knobs))
    run = here.run
    if run is None or run.config != config:
        run = LiveRun(scenario, config, scenario.load(config, None))
        here.put(run)
        run.start()
    return run


def trials_of(here: Desk, run: LiveRun, screen: Screen) -> None:
    """Trials of the screen's remedies, begun when it is opened."""
    told = tuple(r for r in run.scenario.remedies if r.name in screen.remedies)
    trials = registry().beside(here.key)
    if isinstance(trials, Trials) and trials.setting.scenario.remedies == told:
        return
    scenario = replace(run.scenario, remedies=told, together=())
    trials = Trials(scenario, run.config, run.dataset)
    registry().put_beside(here.key, trials)
    trials.start()
