"""Laboratory: one scenario with its knobs, its run and the pictures of it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from models.errors import BadInput
from models.training.live import LiveRun

from . import heading, knobs_panel, live_view, remedies_panel, source_panel, transport
from .desk import Desk, desk, registry, tab_name
from .settings import Settings, current, write_query

Places = dict[str, DeltaGenerator]


def show() -> None:
    """Draw the laboratory and let the run follow the knobs."""
    settings = current(Settings)
    tab = tab_name()
    heading.show(settings)
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


def follow(here: Desk, settings: Settings, places: Places) -> bool:
    """Bring the run to where the knobs stand; False if something in them cannot be used."""
    run = here.run
    if run is None or settings.start:
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
    moved = ", ".join(settings.scenario.knob(name).label for name in restarts) or "data"
    try:
        fresh = new_run(settings, because=f"Run restarted: {moved} changed.")
    except BadInput as error:
        places.get(error.field, places["data"]).error(error.sentence, icon=":material/error:")
        return False
    starting = starting or run.running
    here.put(fresh)
    if starting:
        fresh.start()
    return True


def open_run(here: Desk, settings: Settings) -> bool:
    """A run from step 0 with these knobs; what cannot be used is named and replaced by its
    default."""
    try:
        fresh = new_run(settings)
    except BadInput as error:
        settings.notices.append(f"{error.sentence} The default is used.")
        settings.start_over()
        write_query(settings)
        st.rerun()
    here.put(fresh)
    if settings.start:
        settings.start = False
        fresh.start()
        write_query(settings)
        st.rerun()  # the buttons have been drawn already
    return True


def new_run(settings: Settings, because: str = "") -> LiveRun:
    dataset = settings.scenario.load(settings.config, settings.content)
    return LiveRun(settings.scenario, settings.config, dataset, settings.content, because)


def pause_the_one_before(here: Desk) -> None:
    """A tab trains one scenario at a time: the one that was left is paused and kept."""
    before = st.session_state.get("desk")
    if before != here.key:
        left = registry().run(before) if before else None
        if left:
            left.pause()
        st.session_state["desk"] = here.key
