"""Knobs: one table of settings that drives widgets, URL, command line, trainer and tests.

A knob is plain data. `parse` and `format` are each other's inverse: text is what stands in a URL
or after `--set`, a value is what Python works with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import BadInput

KnobValue = float | int | bool | str | tuple[float, float]
Config = dict[str, Any]  # name → KnobValue

Stage = Literal["data", "graph", "step"]

GROUPS = ("numerics", "clipping", "optimiser", "model", "data")


@dataclass(frozen=True, kw_only=True)
class Knob:
    """What every knob has.

    `stage` tells when it is read: when the "data" and the starting weights are made, when the
    "graph" is compiled, or at every "step". Moving a knob of the first two stages restarts the run;
    the others act on the next step. `shown_if` names other knobs and the values of them at which
    this one matters; empty means always.
    """

    name: str
    label: str
    group: str
    help: str
    stage: Stage = "step"
    shown_if: Mapping[str, tuple[KnobValue, ...]] = field(default_factory=dict)

    @property
    def structural(self) -> bool:
        return self.stage != "step"

    def matters(self, config: Mapping[str, KnobValue]) -> bool:
        """Whether the knob has any effect when the others stand as in `config`."""
        return all(config[name] in values for name, values in self.shown_if.items())

    def _refuse(self, problem: str) -> BadInput:
        return BadInput(f"{self.label} ({self.name}): {problem}", field=self.name)


def format_number(value: float) -> str:
    """Shortest text that reads back as the same float: `1e-07` becomes `1e-7`."""
    if float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))
    mantissa, _, exponent = repr(float(value)).partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _read_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


@dataclass(frozen=True, kw_only=True)
class Number(Knob):
    """A number between `low` and `high` (both included); `scale` is how its slider runs."""

    default: float
    low: float
    high: float
    unit: str = ""
    scale: str = "linear"
    integer: bool = False
    increment: float | None = None

    def parse(self, text: str) -> float | int:
        try:
            value = _read_float(text)
        except ValueError:
            raise self._refuse(f"“{text}” is not a number; {self._right()}.") from None
        return self.check(value)

    def check(self, value: KnobValue) -> float | int:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._refuse(f"{value!r} is not a number; {self._right()}.")
        if self.integer and not float(value).is_integer():
            raise self._refuse(f"{format_number(value)} is not a whole number; {self._right()}.")
        if not self.low <= value <= self.high:
            raise self._refuse(f"{format_number(value)} is out of range; {self._right()}.")
        return int(value) if self.integer else float(value)

    def format(self, value: KnobValue) -> str:
        assert isinstance(value, (int, float))
        return format_number(value)

    def _right(self) -> str:
        kind = "a whole number" if self.integer else "a number"
        unit = f" {self.unit}" if self.unit else ""
        return f"give {kind} from {format_number(self.low)} to {format_number(self.high)}{unit}"


@dataclass(frozen=True, kw_only=True)
class Interval(Knob):
    """Two numbers, low end first, both between `low` and `high`; written `0.1..2`."""

    default: tuple[float, float]
    low: float
    high: float
    unit: str = ""
    increment: float | None = None

    def parse(self, text: str) -> tuple[float, float]:
        ends = text.split("..")
        try:
            low, high = (_read_float(end) for end in ends)
        except ValueError:
            raise self._refuse(f"“{text}” is not an interval; {self._right()}.") from None
        return self.check((low, high))

    def check(self, value: KnobValue) -> tuple[float, float]:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise self._refuse(f"{value!r} is not an interval; {self._right()}.")
        low, high = (float(end) for end in value)
        if not self.low <= low < high <= self.high:
            raise self._refuse(f"{self.format((low, high))} does not fit; {self._right()}.")
        return low, high

    def format(self, value: KnobValue) -> str:
        assert isinstance(value, tuple)
        return "..".join(format_number(end) for end in value)

    def _right(self) -> str:
        ends = f"{format_number(self.low)} and {format_number(self.high)}"
        return f"give low..high between {ends}, low below high"


@dataclass(frozen=True, kw_only=True)
class Choice(Knob):
    """One of `options`, a mapping from value to the words shown for it."""

    default: str
    options: Mapping[str, str]
    stage: Stage = "graph"

    def parse(self, text: str) -> str:
        return self.check(text)

    def check(self, value: KnobValue) -> str:
        if value not in self.options:
            raise self._refuse(f"“{value}” is not a choice; give {_either(self.options)}.")
        return str(value)

    def format(self, value: KnobValue) -> str:
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Toggle(Knob):
    """On or off."""

    default: bool
    stage: Stage = "graph"

    def parse(self, text: str) -> bool:
        words = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
        if text.lower() not in words:
            raise self._refuse(f"“{text}” is neither; give on or off.")
        return words[text.lower()]

    def check(self, value: KnobValue) -> bool:
        if not isinstance(value, bool):
            raise self._refuse(f"{value!r} is neither; give on or off.")
        return value

    def format(self, value: KnobValue) -> str:
        return "on" if value else "off"


@dataclass(frozen=True, kw_only=True)
class Text(Knob):
    """Free text of at most `longest` characters; what it may say is checked where it is used."""

    default: str
    longest: int = 200
    stage: Stage = "data"

    def parse(self, text: str) -> str:
        return self.check(text)

    def check(self, value: KnobValue) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self._refuse("it is empty; give some text.")
        if len(value) > self.longest:
            raise self._refuse(f"{len(value)} characters are too many; give {self.longest}.")
        return value.strip()

    def format(self, value: KnobValue) -> str:
        return str(value)


AnyKnob = Number | Interval | Choice | Toggle | Text


def defaults(knobs: Iterable[AnyKnob]) -> Config:
    return {knob.name: knob.default for knob in knobs}


def _either(options: Iterable[str]) -> str:
    *most, last = options
    return f"{', '.join(most)} or {last}" if most else last
