"""`scenarios`: what there is to run and to turn."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ..scenarios import scenarios
from ..scenarios.contract import Scenario
from ..scenarios.knobs import AnyKnob, Choice, Interval, KnobValue, Number, Toggle, format_number
from .command import Command
from .output import add_json_argument, check_writable, write_json


def execute(arguments: argparse.Namespace) -> int:
    check_writable(arguments.json)
    if arguments.json is None:
        print("\n\n".join(_text(scenario) for scenario in scenarios().values()))
    else:
        described = [describe(scenario) for scenario in scenarios().values()]
        write_json(arguments.json, {"scenarios": described})
    return 0


def describe(scenario: Scenario) -> dict[str, Any]:
    """Everything about a scenario that is data, as plain values."""
    return {
        "name": scenario.name,
        "title": scenario.title,
        "story": scenario.story,
        "question": scenario.question,
        "knobs": [describe_knob(knob) for knob in scenario.knobs],
        "presets": [
            {"name": p.name, "title": p.title, "story": p.story, "knobs": dict(p.knobs)}
            for p in scenario.presets
        ],
        "remedies": [
            {"name": r.name, "title": r.title, "reason": r.reason, "knobs": dict(r.knobs)}
            for r in scenario.remedies
        ],
        "data": {
            "label": scenario.source.label,
            "file_types": scenario.source.file_types,
            "help": scenario.source.help,
        },
    }


def describe_knob(knob: AnyKnob) -> dict[str, Any]:
    """`unit`, `low`, `high`, `scale` of numbers and intervals, `options` of choices, else null."""
    described: dict[str, Any] = {
        "name": knob.name,
        "kind": _kind(knob),
        "group": knob.group,
        "label": knob.label,
        "help": knob.help,
        "default": knob.default,
        "unit": None,
        "low": None,
        "high": None,
        "scale": None,
        "options": None,
        "stage": knob.stage,
        "shown_if": {name: list(values) for name, values in knob.shown_if.items()},
    }
    if isinstance(knob, (Number, Interval)):
        scale = knob.scale if isinstance(knob, Number) else "linear"
        described |= {"unit": knob.unit, "low": knob.low, "high": knob.high, "scale": scale}
    if isinstance(knob, Choice):
        described["options"] = dict(knob.options)
    return described


def _kind(knob: AnyKnob) -> str:
    if isinstance(knob, Number):
        return "integer" if knob.integer else "number"
    return type(knob).__name__.lower()


def _text(scenario: Scenario) -> str:
    def settings(knobs: Mapping[str, KnobValue]) -> str:
        return " ".join(f"{name}={scenario.knob(name).format(knobs[name])}" for name in knobs)

    knobs = [(k.name, f"{k.format(k.default)} ({_range(k)})") for k in scenario.knobs]
    presets = [(p.name, settings(p.knobs) or "(the defaults)") for p in scenario.presets]
    remedies = [(r.name, settings(r.knobs)) for r in scenario.remedies]
    lines = [f"{scenario.name}: {scenario.story}"]
    for heading, rows in (("presets", presets), ("knobs", knobs), ("remedies", remedies)):
        lines += [f"  {heading}", *(f"    {name:22}{text}" for name, text in rows)]
    return "\n".join(lines)


def _range(knob: AnyKnob) -> str:
    if isinstance(knob, (Number, Interval)):
        bounds = f"{format_number(knob.low)} to {format_number(knob.high)}"
        return f"{bounds} {knob.unit}".rstrip()
    if isinstance(knob, Toggle):
        return "on, off"
    return ", ".join(knob.options) if isinstance(knob, Choice) else "text"


COMMAND = Command(
    name="scenarios",
    help="List scenarios with their knobs, presets and remedies.",
    configure=add_json_argument,
    execute=execute,
)
