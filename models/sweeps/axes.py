"""Axes of a map: a knob and the values it takes, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import BadInput
from ..scenarios.contract import Scenario
from ..scenarios.knobs import AnyKnob, KnobValue, Number

FINEST = 64  # values of one axis
MOST_AXES = 3
DEFAULT_RESOLUTION = 16

# Knobs that every sweep sets by itself, and why they are no axis.
NO_AXIS = {
    "seed": "a sweep repeats every setting over its seeds; give their number instead",
    "on_bad": "a sweep follows every setting to its first bad step and halts there",
}


@dataclass(frozen=True)
class Axis:
    """A knob and its values, in rising order where they were made from a range.

    `log` tells how the axis is drawn.
    """

    knob: str
    values: tuple[KnobValue, ...]
    log: bool = False


def between(knob: Number, low: float, high: float, resolution: int, log: bool) -> Axis:
    """`resolution` values from `low` to `high`, both included; a whole-number knob has each value
    once, so perhaps fewer."""
    if not 2 <= resolution <= FINEST:
        raise BadInput(
            f"{knob.name} in {resolution} values; give from 2 to {FINEST}.", field=knob.name
        )
    low, high = float(knob.check(low)), float(knob.check(high))
    if not low < high:
        raise BadInput(
            f"{knob.name}: {low:g} is not below {high:g}; give the low end first.", field=knob.name
        )
    if log and low <= 0:
        raise BadInput(
            f"{knob.name}: a logarithmic axis cannot begin at {low:g}; give a low end above 0.",
            field=knob.name,
        )
    values = (np.geomspace if log else np.linspace)(low, high, resolution)
    values[0], values[-1] = low, high  # geomspace may round beyond them
    if knob.integer:
        values = np.unique(np.round(values))
    return Axis(knob.name, tuple(knob.check(float(value)) for value in values), log)


def explicit(knob: AnyKnob, values: Sequence[KnobValue]) -> Axis:
    """The values given, each once, in their order."""
    checked = tuple(dict.fromkeys(knob.check(value) for value in values))
    if not 1 <= len(checked) <= FINEST:
        raise BadInput(f"{knob.name}: give from 1 to {FINEST} values.", field=knob.name)
    return Axis(knob.name, checked, isinstance(knob, Number) and knob.scale == "log")


def read_axis(scenario: Scenario, text: str) -> Axis:
    """`epsilon=1e-12:1e-2:log:32`, `learning_rate=0:1:16`, or `dtype=float32,float64`.

    A range is low:high, then optionally log or linear (else as the knob's slider runs) and the
    number of values.
    """
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not equals or not rest:
        raise BadInput(
            f"“{text}” is no axis; give knob=low:high:log:32 or knob=value,value.", field=name
        )
    knob = scenario.knob(name)
    if ":" not in rest:
        return explicit(knob, [knob.parse(value.strip()) for value in rest.split(",")])
    if not isinstance(knob, Number):
        raise BadInput(f"{name} has no range; give its values as {name}=value,value.", field=name)
    low, high, *options = (part.strip() for part in rest.split(":"))
    log, resolution = knob.scale == "log", DEFAULT_RESOLUTION
    for option in options:
        if option in ("log", "linear", "lin"):
            log = option == "log"
        elif option.isdecimal():
            resolution = int(option)
        else:
            raise BadInput(
                f"{name}: “{option}” is neither log nor linear nor a number of values.", field=name
            )
    return between(knob, knob.parse(low), knob.parse(high), resolution, log)


def check_axes(scenario: Scenario, axes: Sequence[Axis]) -> None:
    """BadInput unless these are one to three different knobs that a sweep may turn."""
    names = [axis.knob for axis in axes]
    if not 1 <= len(names) <= MOST_AXES:
        raise BadInput(f"{len(names)} axes; give from 1 to {MOST_AXES}.", field="axes")
    for axis in axes:
        scenario.knob(axis.knob)
        if axis.knob in NO_AXIS:
            raise BadInput(f"{axis.knob} is no axis: {NO_AXIS[axis.knob]}.", field=axis.knob)
        if names.count(axis.knob) > 1:
            raise BadInput(f"{axis.knob} is on two axes; give each its own knob.", field=axis.knob)
