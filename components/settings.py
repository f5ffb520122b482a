"""Settings of a scenario in this session: which preset, which knobs, and the URL that restores
them.

The URL holds the scenario, the preset and every knob that differs from the preset, in the same
words as the command line. What cannot be read there is named in a notice, and the default is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import streamlit as st

from models.errors import BadInput
from models.scenarios import scenario as scenario_named
from models.scenarios import scenarios
from models.scenarios.contract import Scenario
from models.scenarios.knobs import Config

T = TypeVar("T")


@dataclass
class Settings:
    """One scenario's settings; kept in the session, changed by its widgets."""

    scenario: Scenario
    preset: str
    config: Config
    content: bytes | None = None  # of the file that a person brought
    notices: list[str] = field(default_factory=list)
    drawn: Config = field(default_factory=dict)  # the knobs when their widgets were made
    generation: int = 0  # of the widgets

    def __post_init__(self) -> None:
        self.drawn = dict(self.config)

    @classmethod
    def default(cls, scenario: Scenario) -> Settings:
        preset = scenario.presets[0].name
        return cls(scenario, preset, scenario.config(preset))

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
        return f"{self.scenario.name}/{knob}/{self.generation}"

    def query(self) -> dict[str, str]:
        """What the URL says."""
        preset = self.scenario.config(self.preset)
        knobs = {
            knob.name: knob.format(self.config[knob.name])
            for knob in self.scenario.knobs
            if self.config[knob.name] != preset[knob.name]
        }
        return {"scenario": self.scenario.name, "preset": self.preset, **knobs}


def current_settings() -> Settings:
    """The settings of the scenario on the page: those of the URL when that was opened or edited,
    else those of this session."""
    known: dict[str, Settings] = st.session_state.setdefault("settings", {})
    query = dict(st.query_params)
    if query and query != st.session_state.get("query"):
        asked = read_query(query)
        if set(query) != {"scenario"} or asked.scenario.name not in known:
            known[asked.scenario.name] = asked
        st.session_state["scenario"] = asked.scenario.name
    name = st.session_state.setdefault("scenario", next(iter(scenarios())))
    if name not in known:
        known[name] = Settings.default(scenario_named(name))
    return known[name]


def read_query(query: dict[str, str]) -> Settings:
    """Settings from a URL's parameters, with a notice for each that cannot be used."""
    notices: list[str] = []

    def tried(read: Callable[[], T], default: T) -> T:
        try:
            return read()
        except BadInput as error:
            notices.append(f"{error.sentence} The link is ignored there.")
            return default

    first = next(iter(scenarios().values()))
    name = query.get("scenario", first.name)
    scenario = tried(lambda: scenario_named(name), first)
    asked = query.get("preset", scenario.presets[0].name)
    preset = tried(lambda: scenario.preset(asked), scenario.presets[0])
    config = scenario.config(preset.name)
    for knob, text in query.items():
        if knob not in ("scenario", "preset"):
            change: Config = tried(partial(_read_knob, scenario, knob, text), Config())
            config |= change
    return Settings(scenario, preset.name, config, notices=notices)


def _read_knob(scenario: Scenario, name: str, text: str) -> Config:
    return {name: scenario.knob(name).parse(text)}


def write_query(settings: Settings) -> None:
    query = settings.query()
    st.session_state["query"] = query
    if dict(st.query_params) != query:
        st.query_params.from_dict(query)
