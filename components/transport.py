"""Transport: start, pause, step and reset, and what happens at a non-finite gradient."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from models.training.live import LiveRun

from . import knobs_panel
from .desk import Desk
from .settings import Settings


def show(settings: Settings, here: Desk) -> None:
    """The buttons act before the page runs again, so that it shows what they did."""
    run = here.run
    running = run is not None and run.running
    with st.container(horizontal=True, vertical_alignment="bottom"):
        button(here, "Pause" if running else "Start", LiveRun.pause if running else LiveRun.start)
        button(here, "Step", LiveRun.take_step)
        button(here, "Reset", LiveRun.reset)
        with st.container(width=260):
            on_bad = settings.scenario.knob("on_bad")
            settings.config["on_bad"] = knobs_panel.widget(settings, on_bad)


BUTTONS = {  # icon, shortcut, help
    "Start": (":material/play_arrow:", "p", "Train until it is paused or halts."),
    "Pause": (":material/pause:", "p", "Stop after the present burst of steps."),
    "Step": (":material/skip_next:", "s", "Take one step, then pause."),
    "Reset": (":material/restart_alt:", "0", "Go back to step 0 with the knobs as they stand."),
}


def button(here: Desk, name: str, act: Callable[[LiveRun], None]) -> None:
    icon, shortcut, help_text = BUTTONS[name]
    st.button(
        name,
        icon=icon,
        shortcut=shortcut,
        help=help_text,
        type="primary" if name in ("Start", "Pause") else "secondary",
        on_click=lambda: act(here.run) if here.run else None,
        key=f"transport/{name}",
    )
