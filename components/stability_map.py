"""Stability map: where in the space of settings training stays finite."""

from __future__ import annotations

import streamlit as st

from models.errors import BadInput
from models.sweeps.engines import engine
from models.sweeps.running import SweepRun
from models.sweeps.work import MapWork

from . import heading, knobs_panel, map_setup, map_view, source_panel
from .desk import MapDesk, map_desk, tab_name
from .map_settings import MapSettings
from .map_setup import Places
from .settings import current, write_query


def show() -> None:
    """Draw the page; what it computes equals `python -m models sweep` with the same words."""
    settings = current(MapSettings)
    tab = tab_name()
    heading.show(settings)
    with st.sidebar:
        swept = {axis.knob for axis in settings.axes}
        places = {"data": source_panel.show(settings)} | knobs_panel.show(settings, swept)
    if tab is None:  # the browser tells it at once, and the page runs again
        return
    here = map_desk(tab, f"{settings.scenario.name}/map")
    button = st.container()
    picture, setup = st.columns([8, 3], gap="medium")  # on a phone the picture stands above
    with setup:
        places |= map_setup.show(settings)
    with button:
        controls(settings, here, places)
    with picture:
        map_view.show(settings, here)


def controls(settings: MapSettings, here: MapDesk, places: Places) -> None:
    """The main button, which follows what there is to do, and what stands in its way."""
    problem = map_setup.error(settings)
    if problem is None:
        write_query(settings)
    else:
        tell(problem, places)
    run = here.run.run if here.run else None
    if run is not None and problem is None and run.sweep != settings.sweep():
        run = None  # the controls ask for another map
    if run is not None and run.status == "running":
        st.button(
            "Stop",
            icon=":material/stop:",
            type="primary",
            help="What is computed is kept, and it can go on from there.",
            disabled=not run.running,  # it is about to stop
            on_click=run.stop,
            key="map/stop",
        )
        return
    left = run is not None and run.status != "done"
    failed = run is not None and bool(run.view().failed)
    complete = run is not None and not left and not failed
    if st.button(
        "Resume" if left else "Try the failed ones again" if failed else "Compute the map",
        icon=":material/play_arrow:" if left or failed else ":material/grid_on:",
        type="primary",
        disabled=complete or problem is not None,
        help="This map is complete; move a control for another." if complete else None,
        key="map/start",
    ):
        begin(settings, here, places, resume=left or failed)


def begin(settings: MapSettings, here: MapDesk, places: Places, *, resume: bool) -> None:
    """Start a sweep, or go on with the one there is on the engine that is chosen now."""
    try:
        settings.scenario.load(settings.config, settings.content)
        with st.spinner("Looking for the workers …"):
            chosen = engine(settings.engine)
    except BadInput as problem:
        tell(problem, places)
        return
    work = here.run
    if resume and work is not None:
        work.run.start(chosen)
    else:
        run = SweepRun(settings.sweep(), chosen)
        here.put(MapWork(run))
        run.start()
    st.rerun()


def tell(problem: BadInput, places: Places) -> None:
    """A sentence next to the control that it is about."""
    place = places.get(problem.field) or places["axes"]
    place.error(problem.sentence, icon=":material/error:")
