"""Knobs panel: one widget for each knob that matters, made from the scenario's table."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from models.scenarios.knobs import (
    GROUPS,
    AnyKnob,
    Choice,
    Interval,
    KnobValue,
    Number,
    Text,
    Toggle,
    format_number,
)

from .settings import Settings

ICONS = {
    "numerics": ":material/calculate:",
    "clipping": ":material/content_cut:",
    "optimiser": ":material/speed:",
    "model": ":material/account_tree:",
    "data": ":material/table_rows:",
}
MANTISSAS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
FITS_ON_ONE_LINE = 24  # characters of all options together
LONGEST_SLIDER = 1000
ELSEWHERE = ("on_bad",)  # stands beside the start button


def show(settings: Settings, left_out: Collection[str] = ()) -> dict[str, DeltaGenerator]:
    """Draw the knobs, grouped, and turn `settings` to what they say.

    Returns a place beneath each knob where an error that it causes can be shown.
    """
    places = {}
    for group in GROUPS:
        knobs = [
            knob
            for knob in settings.scenario.knobs
            if knob.group == group
            and knob.name not in (*ELSEWHERE, *left_out)
            and knob.matters(settings.config)
        ]
        if not knobs:
            continue
        with st.expander(group.capitalize(), expanded=True, icon=ICONS[group]):
            for knob in knobs:
                settings.config[knob.name] = widget(settings, knob)
                places[knob.name] = st.empty()
    return places


def widget(settings: Settings, knob: AnyKnob) -> KnobValue:
    """The knob's widget; returns the value it shows.

    The value is passed each time, though the key keeps it: a widget in an expander may be mounted
    only after the page has run once more, and would then show its first option.
    """
    key, value = settings.widget_key(knob.name), settings.config[knob.name]
    help_text = f"{knob.help} {facts(knob)}"
    label = f"{knob.label} ↻" if knob.structural else knob.label
    common: dict[str, Any] = {"label": label, "key": key, "help": help_text}
    if isinstance(knob, Number):
        return _number(knob, value, settings.drawn[knob.name], common)
    if isinstance(knob, Interval):
        ends: dict[str, Any] = {"min_value": knob.low, "max_value": knob.high, "value": value}
        return st.slider(**common, **ends, step=knob.increment)
    if isinstance(knob, Choice):
        words = knob.options
        common |= {"options": list(words), "format_func": lambda option: words[option]}
        if sum(map(len, words.values())) <= FITS_ON_ONE_LINE:
            return st.segmented_control(**common, default=value, required=True)
        return st.selectbox(**common, index=list(words).index(value))
    if isinstance(knob, Toggle):
        return st.toggle(**common, value=value)
    assert isinstance(knob, Text)
    return st.text_input(**common, value=value, max_chars=knob.longest)


def _number(knob: Number, value: float, drawn: float, common: dict[str, Any]) -> float:
    if knob.unit:
        common["label"] += f" ({knob.unit})"
    if knob.scale == "log":
        stops = log_grid(knob, drawn)
        return st.select_slider(**common, options=stops, value=value, format_func=format_number)
    if knob.integer:
        draw = st.slider if knob.high - knob.low <= LONGEST_SLIDER else st.number_input
        return draw(
            **common, min_value=int(knob.low), max_value=int(knob.high), value=int(value), step=1
        )
    return st.slider(
        **common, min_value=knob.low, max_value=knob.high, value=value, step=knob.increment
    )


def facts(knob: AnyKnob) -> str:
    """Range, default and effect of a knob, in a sentence or two."""
    shown = knob.options[knob.default] if isinstance(knob, Choice) else knob.format(knob.default)
    words = [f"Default {shown}"]
    if isinstance(knob, (Number, Interval)):
        words.append(f"range {format_number(knob.low)} to {format_number(knob.high)} {knob.unit}")
    acts = "Moving it restarts the run." if knob.structural else "It acts on the next step."
    return f"{', '.join(words).strip()}. {acts}"


def log_grid(knob: Number, value: float) -> list[float]:
    """Stops of a logarithmic slider: six a decade, the knob's ends, its default and `value`."""
    decades = range(math.floor(math.log10(knob.low)), math.ceil(math.log10(knob.high)) + 1)
    stops = {float(f"{m}e{d}") for d in decades for m in MANTISSAS}
    inside = {stop for stop in stops if knob.low <= stop <= knob.high}
    return sorted(inside | {knob.low, knob.high, knob.default, value})
