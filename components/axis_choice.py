"""One axis of a map as a person chooses it: a knob, and a range or a list of values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from models.errors import BadInput
from models.scenarios.contract import Scenario
from models.scenarios.knobs import AnyKnob, Choice, Number, Toggle, format_number
from models.sweeps.axes import DEFAULT_RESOLUTION, NO_AXIS, Axis, read_axis


@dataclass(frozen=True)
class AxisChoice:
    """What stands in the widgets, as text; `axis` makes an axis of it.

    `values`: what is written for a list, else empty.
    """

    knob: str
    low: str = ""
    high: str = ""
    log: bool = False
    resolution: int = DEFAULT_RESOLUTION
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, knob: AnyKnob) -> Self:
        """Where a knob's axis begins: its whole range, or all that it can be."""
        if isinstance(knob, Number):
            ends = format_number(knob.low), format_number(knob.high)
            return cls(knob.name, *ends, log=knob.scale == "log")
        if isinstance(knob, Choice):
            return cls(knob.name, values=tuple(knob.options))
        if isinstance(knob, Toggle):
            return cls(knob.name, values=("off", "on"))
        return cls(knob.name, values=(knob.format(knob.default),))

    @classmethod
    def read(cls, scenario: Scenario, text: str) -> Self:
        """The inverse of `text`; BadInput as `read_axis` has it."""
        axis = read_axis(scenario, text)
        rest = text.partition("=")[2]
        if ":" not in rest:
            knob = scenario.knob(axis.knob)
            return cls(axis.knob, values=tuple(knob.format(value) for value in axis.values))
        low, high, *options = (part.strip() for part in rest.split(":"))
        counts = [int(option) for option in options if option.isdecimal()]
        count = counts[-1] if counts else DEFAULT_RESOLUTION
        return cls(axis.knob, low, high, axis.log, count)

    @property
    def text(self) -> str:
        """As it stands in the URL and after `--grid`."""
        if self.values:
            return f"{self.knob}={','.join(self.values)}"
        scale = "log" if self.log else "linear"
        return f"{self.knob}={self.low}:{self.high}:{scale}:{self.resolution}"

    def axis(self, scenario: Scenario) -> Axis:
        """Raises BadInput."""
        knob = scenario.knob(self.knob)
        if not self.values and not isinstance(knob, Number):
            raise BadInput(f"{self.knob}: give at least one value.", field=self.knob)
        if isinstance(knob, Number) and not self.values:
            for end in (self.low, self.high):
                knob.parse(end)  # the clearest sentence comes from the knob itself
        return read_axis(scenario, self.text)

    def with_values(self, values: tuple[str, ...]) -> Self:
        return replace(self, values=values)


def first_axes(scenario: Scenario, config: dict[str, object]) -> tuple[AxisChoice, ...]:
    """The axes of the scenario's first map that matter with these knobs, two at most."""
    choices = [AxisChoice.read(scenario, text) for text in scenario.first_map.axes]
    return tuple(c for c in choices if scenario.knob(c.knob).matters(config))[:2]  # type: ignore[arg-type]


def suggested(scenario: Scenario, knob: str) -> AxisChoice:
    """A knob's axis as the scenario's first map has it, else its whole range."""
    for text in scenario.first_map.axes:
        if text.partition("=")[0] == knob:
            return AxisChoice.read(scenario, text)
    return AxisChoice.of(scenario.knob(knob))


def candidates(scenario: Scenario) -> list[AnyKnob]:
    """The knobs that may be an axis."""
    return [knob for knob in scenario.knobs if knob.name not in NO_AXIS]
