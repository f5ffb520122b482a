"""Desks: which run a browser tab works on.

A run lives in the server's registry; the session holds a lease on it through a session-scoped
resource, which Streamlit releases when the tab is closed, reloaded, or loses its connection. The
tab's name survives a reload, so the session that comes back takes its own run up again.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic

import streamlit as st

from models.sweeps.work import MapWork
from models.training.live import LiveRun
from models.training.registry import R, Registry

SECONDS_FOR_HANDOVER = 0.4  # a reloaded page can be faster than the end of its old session

_tab_identity = st.components.v2.component(
    "nanatomy.tab_identity",
    js=(Path(__file__).parent / "browser" / "tab_identity.js").read_text(encoding="utf-8"),
)


@st.cache_resource(show_spinner=False)
def registry() -> Registry[LiveRun]:
    """All live runs of this server."""
    return Registry()


@st.cache_resource(show_spinner=False)
def map_registry() -> Registry[MapWork]:
    """All stability maps of this server."""
    return Registry()


@dataclass(frozen=True)
class Lease(Generic[R]):
    """A lease on one key of a registry."""

    key: str
    holder: str
    registry: Registry[R] = field(repr=False)

    @property
    def run(self) -> R | None:
        return self.registry.run(self.key)

    def put(self, run: R) -> None:
        self.registry.put(self.key, run)

    def release(self) -> None:
        self.registry.release(self.key, self.holder)


Desk = Lease[LiveRun]
MapDesk = Lease[MapWork]


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


@st.cache_resource(scope="session", on_release=Lease.release, show_spinner=False)
def desk(tab: str, scenario: str) -> Desk:
    """The desk of this session for one scenario."""
    return _lease(registry(), tab, scenario)


@st.cache_resource(scope="session", on_release=Lease.release, show_spinner=False)
def map_desk(tab: str, scenario: str) -> MapDesk:
    """The desk of this session for the stability map of one scenario."""
    return _lease(map_registry(), tab, scenario)


def _lease(runs: Registry[R], tab: str, scenario: str) -> Lease[R]:
    """A duplicated tab has the name of the first: while that one is open, the second works under a
    name of its own."""
    key, holder = f"{tab}/{scenario}", uuid.uuid4().hex
    if not runs.acquire(key, holder):
        time.sleep(SECONDS_FOR_HANDOVER)
        if not runs.acquire(key, holder):
            key = f"{holder}/{scenario}"
            runs.acquire(key, holder)
    return Lease(key, holder, runs)
