"""Desks: which run a browser tab works on.

A run lives in the server's registry; the session holds a lease on it through a session-scoped
resource, which Streamlit releases when the tab is closed, reloaded, or loses its connection. The
tab's name survives a reload, so the session that comes back takes its own run up again.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from models.training.live import LiveRun
from models.training.registry import Registry

SECONDS_FOR_HANDOVER = 0.4  # a reloaded page can be faster than the end of its old session

_tab_identity = st.components.v2.component(
    "nanatomy.tab_identity",
    js=(Path(__file__).parent / "browser" / "tab_identity.js").read_text(encoding="utf-8"),
)


@st.cache_resource(show_spinner=False)
def registry() -> Registry:
    """All live runs of this server."""
    return Registry()


@dataclass(frozen=True)
class Desk:
    """A lease on one key of the registry."""

    key: str
    holder: str

    @property
    def run(self) -> LiveRun | None:
        return registry().run(self.key)

    def put(self, run: LiveRun) -> None:
        registry().put(self.key, run)

    def release(self) -> None:
        registry().release(self.key, self.holder)


def tab_name() -> str | None:
    """This browser tab's name; None until the browser has told it (the page then runs again)."""
    known: str | None = st.session_state.get("tab")
    # (Streamlit keeps only those values of a component that have a callback.)
    told = _tab_identity(key="tab_identity", data=known, on_name_change=lambda: None).get("name")
    # It is drawn every time: were it missing, all that follows would move up by one place, and the
    # browser would show it twice until the page has run.
    if told and not known:
        st.session_state["tab"] = told
    return known or told


@st.cache_resource(scope="session", on_release=Desk.release, show_spinner=False)
def desk(tab: str, scenario: str) -> Desk:
    """The desk of this session for one scenario.

    A duplicated tab has the name of the first: while that one is open, the second works under a
    name of its own.
    """
    key, holder = f"{tab}/{scenario}", uuid.uuid4().hex
    if not registry().acquire(key, holder):
        time.sleep(SECONDS_FOR_HANDOVER)
        if not registry().acquire(key, holder):
            key = f"{holder}/{scenario}"
            registry().acquire(key, holder)
    return Desk(key, holder)
