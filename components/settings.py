"""Settings of a scenario on a page of this session: which preset, which knobs, and the URL that
restores them.

The URL holds the scenario, the preset and every knob that differs from the preset, in the same
words as the command line. What cannot be read there is named in a notice, and the default is used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Self, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from models.errors import BadInput
from models.scenarios import scenario as scenario_named
from models.scenarios import scenarios
from models.scenarios.contract import Scenario
from models.scenarios.knobs import Config

T = TypeVar("T")
S = TypeVar("S", bound="Settings")
Query = Mapping[str, str]
Address = frozenset[tuple[str, str]]
SECONDS_TO_HEAR = 5.0  # of a new address, for a browser under load
START, OWN_DATA = "start", "own_data"  # in a link: the run is to start, with the session's own file


@dataclass
class Settings:
    """One scenario's settings; kept in the session, changed by its widgets.

    Widgets' values are taken up where they are drawn, and callbacks change plain objects like this
    one: in a callback that a second click overtakes, Streamlit raises at the first touch of the
    session's state or the URL, and what the person did would be lost.
    """

    page: ClassVar[str] = ""  # tells the widgets of one page from another's
    others: ClassVar[tuple[str, ...]] = (START, OWN_DATA)  # what a URL says besides knobs

    scenario: Scenario
    preset: str
    config: Config
    content: bytes | None = None  # of the file that a person brought
    upload: str | None = None  # which file the upload shows
    uploads: int = 0  # emptied so often
    start: bool = False  # whether a link asks for the run, from step 0
    notices: list[str] = field(default_factory=list)
    drawn: Config = field(default_factory=dict)  # the knobs when their widgets were made
    generation: int = 0  # of the widgets

    def __post_init__(self) -> None:
        self.drawn = dict(self.config)

    @classmethod
    def default(cls, scenario: Scenario) -> Self:
        return cls.read({"scenario": scenario.name})

    @classmethod
    def read(cls, query: Query) -> Self:
        """Settings from a URL's parameters, with a notice for each that cannot be used."""
        notices: list[str] = []
        first = next(iter(scenarios().values()))
        name = query.get("scenario", first.name)
        scenario = tried(lambda: scenario_named(name), first, notices)
        asked = query.get("preset", scenario.presets[0].name)
        preset = tried(lambda: scenario.preset(asked), scenario.presets[0], notices)
        config = scenario.config(preset.name)
        for knob, text in query.items():
            if knob not in ("scenario", "preset", *cls.others):
                change: Config = tried(partial(_read_knob, scenario, knob, text), Config(), notices)
                config |= change
        settings = cls(scenario, preset.name, config, start=START in query, notices=notices)
        if query.get(OWN_DATA):
            settings.content = st.session_state.get(f"{scenario.name}/content")
            if settings.content is None:
                notices.append("The link is about somebody's own data; bring the file again.")
        return settings

    def forget_data(self) -> None:
        """Return to the scenario's own data, with an empty upload."""
        self.content = self.upload = None
        self.uploads += 1

    def start_over(self) -> None:
        """Forget everything but the preset; the page must run again before widgets are drawn."""
        self.content = None
        self.turn(self.scenario.config(self.preset))

    def use_preset(self, name: str) -> None:
        """Turn every knob to the preset's value; seed and what happens at a bad step stay."""
        kept = {k: self.config[k] for k in ("seed", "on_bad")}
        self.preset = name
        self.turn(self.scenario.config(name, kept))

    def turn(self, changes: Config) -> None:
        """Set knobs; new widgets that show them take the place of the old ones."""
        for name, value in changes.items():
            self.config[name] = self.scenario.knob(name).check(value)
        self.drawn = dict(self.config)
        self.generation += 1

    def widget_key(self, knob: str) -> str:
        return f"{self.scenario.name}/{knob}/{self.page}{self.generation}"

    def query(self) -> dict[str, str]:
        """What the URL says."""
        preset = self.scenario.config(self.preset)
        knobs = {
            knob.name: knob.format(self.config[knob.name])
            for knob in self.scenario.knobs
            if self.config[knob.name] != preset[knob.name]
        }
        return {"scenario": self.scenario.name, "preset": self.preset, **knobs}


def current(kind: type[S]) -> S:
    """The settings of the scenario on the page: those of the URL when that was opened or edited,
    else those of this session."""
    known: dict[str, S] = st.session_state.setdefault(f"settings/{kind.page}", {})
    query, chosen = dict(st.query_params), f"scenario/{kind.page}"
    back = _went_back()
    if query and (back or not _is_ours(kind.page, query)):
        asked = kind.read(query)
        before = known.get(asked.scenario.name)
        if before is not None:
            asked.generation = before.generation + 1
            asked.content = before.content if back else asked.content
        if before is None or set(query) != {"scenario"}:
            known[asked.scenario.name] = asked
        st.session_state[chosen] = asked.scenario.name
        _keep(kind.page, query)
    name = st.session_state.setdefault(chosen, next(iter(scenarios())))
    if name not in known:
        known[name] = kind.default(scenario_named(name))
    return known[name]


def choose_scenario(kind: type[Settings], name: str) -> None:
    st.session_state[f"scenario/{kind.page}"] = name


def write_query(settings: Settings) -> None:
    query = settings.query()
    _keep(settings.page, query)
    if dict(st.query_params) != query:
        st.query_params.from_dict(query)


def _went_back() -> bool:
    """Whether the page runs because of the browser's buttons back and forward."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def _is_ours(page: str, query: Query) -> bool:
    """Whether the session stands at this address already, or stood there a moment ago: a browser
    that has not heard of the new address yet asks once more with the old one."""
    known: dict[Address, float] = st.session_state.get(f"addresses/{page}", {})
    return known.get(frozenset(query.items()), 0.0) > time.monotonic()


def _keep(page: str, query: Query) -> None:
    """The session stands at this address now."""
    now = time.monotonic()
    known: dict[Address, float] = st.session_state.get(f"addresses/{page}", {})
    left = {address: min(until, now + SECONDS_TO_HEAR) for address, until in known.items()}
    still = {address: until for address, until in left.items() if until > now}
    st.session_state[f"addresses/{page}"] = still | {frozenset(query.items()): math.inf}


def tried(read: Callable[[], T], default: T, notices: list[str]) -> T:
    """What is read, or the default and a notice."""
    try:
        return read()
    except BadInput as error:
        notices.append(f"{error.sentence} The link is ignored there.")
        return default


def _read_knob(scenario: Scenario, name: str, text: str) -> Config:
    return {name: scenario.knob(name).parse(text)}
