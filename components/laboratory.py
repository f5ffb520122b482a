"""Laboratory: one scenario with its knobs, its run and the pictures of it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from models.errors import BadInput
from models.scenarios import scenarios
from models.training.live import LiveRun

from . import knobs_panel, live_view, remedies_panel, source_panel, transport
from .desk import Desk, desk, registry, tab_name
from .settings import Settings, current_settings, write_query

Places = dict[str, DeltaGenerator]


def show() -> None:
    """Draw the laboratory and let the run follow the knobs."""
    settings = current_settings()
    tab = tab_name()
    heading(settings)
    with st.sidebar:
        places = {"data": source_panel.show(settings)} | knobs_panel.show(settings)
    if tab is None:  # the browser tells it at once, and the page runs again
        return
    here = desk(tab, settings.scenario.name)
    pause_the_one_before(here)
    transport.show(settings, here)
    if follow(here, settings, places):
        write_query(settings)
    live_view.show(here)
    remedies_panel.show(settings, here)


def heading(settings: Settings) -> None:
    names = list(scenarios())
    current = settings.scenario
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Scenario",
            names,
            default=current.name,
            required=True,
            key=f"choose-scenario/{current.name}",
            format_func=lambda name: scenarios()[name].title,
            on_change=_choose_scenario,
            args=(current.name,),
        )
        presets = {preset.name: preset for preset in current.presets}
        st.segmented_control(
            "Preset",
            list(presets),
            default=settings.preset,
            required=True,
            key=f"choose-preset/{current.name}/{settings.preset}",
            format_func=lambda name: presets[name].title,
            on_change=_choose_preset,
            args=(settings,),
        )
    st.markdown(f"{current.story} {presets[settings.preset].story}")
    for notice in settings.notices:
        st.warning(notice, icon=":material/link_off:")


def follow(here: Desk, settings: Settings, places: Places) -> bool:
    """Bring the run to where the knobs stand; False if something in them cannot be used."""
    run = here.run
    if run is None:
        return open_run(here, settings)
    restarts = settings.scenario.restarts(run.config, settings.config)
    live = {
        knob.name: settings.config[knob.name]
        for knob in settings.scenario.knobs
        if not knob.structural and settings.config[knob.name] != run.config[knob.name]
    }
    if live:
        run.change(live)
    starting = st.session_state.pop("start_next_run", False)
    if not restarts and run.content == settings.content:
        if starting:
            run.start()
        return True
    try:
        fresh = new_run(settings)
    except BadInput as error:
        places.get(error.field, places["data"]).error(error.sentence, icon=":material/error:")
        return False
    starting = starting or run.running
    here.put(fresh)
    if starting:
        fresh.start()
    moved = ", ".join(settings.scenario.knob(name).label for name in restarts) or "data"
    st.toast(f"Run restarted: {moved} changed.", icon=":material/restart_alt:")
    return True


def open_run(here: Desk, settings: Settings) -> bool:
    """The first run of a desk; what cannot be used is named and replaced by its default."""
    try:
        here.put(new_run(settings))
    except BadInput as error:
        settings.notices.append(f"{error.sentence} The default is used.")
        settings.start_over()
        write_query(settings)
        st.rerun()
    return True


def new_run(settings: Settings) -> LiveRun:
    dataset = settings.scenario.load(settings.config, settings.content)
    return LiveRun(settings.scenario, settings.config, dataset, settings.content)


def pause_the_one_before(here: Desk) -> None:
    """A tab trains one scenario at a time: the one that was left is paused and kept."""
    before = st.session_state.get("desk")
    if before != here.key:
        left = registry().run(before) if before else None
        if left:
            left.pause()
        st.session_state["desk"] = here.key


def _choose_scenario(current: str) -> None:
    st.session_state["scenario"] = st.session_state[f"choose-scenario/{current}"]


def _choose_preset(settings: Settings) -> None:
    key = f"choose-preset/{settings.scenario.name}/{settings.preset}"
    settings.use_preset(st.session_state[key])
