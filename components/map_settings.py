"""Settings of a stability map: the scenario's, and what is swept over, for how long and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Self

from models.errors import BadInput
from models.scenarios.contract import Scenario
from models.scenarios.knobs import Number
from models.sweeps.plan import MOST_SEEDS, Sweep

from .axis_choice import AxisChoice, first_axes
from .settings import OWN_DATA, Query, Settings, tried

AXES = ("x", "y", "z")
VIEWS = ("loss", "metric", "mechanism", "parameters", "seeds")
LOCAL = "local"
STEPS = Number(
    name="steps",
    label="Steps",
    group="",
    default=200,
    low=1,
    high=1_000_000,
    integer=True,
    help="How long every run trains, unless it breaks before.",
)
SEEDS = Number(
    name="seeds",
    label="Seeds",
    group="",
    default=1,
    low=1,
    high=MOST_SEEDS,
    integer=True,
    help="Every setting is run from so many seeds, from the knob Seed upwards; a cell counts as "
    "finite where all of them stay finite.",
)


@dataclass
class MapSettings(Settings):
    """`axes`: one to three. `engine`: as `models.sweeps.engine` reads it."""

    page: ClassVar[str] = "map"
    others: ClassVar[tuple[str, ...]] = (*AXES, "steps", "seeds", "engine", "view", OWN_DATA)

    axes: tuple[AxisChoice, ...] = ()
    steps: int = 200
    seeds: int = 1
    engine: str = LOCAL
    view: str = VIEWS[0]
    placed: dict[str, int] = field(default_factory=dict)  # generation of an axis's widgets

    @classmethod
    def read(cls, query: Query) -> Self:
        """A link without axes begins with the scenario's first map."""
        settings = super().read(query)
        scenario, notices = settings.scenario, settings.notices
        told = (query[name] for name in AXES if name in query)
        read = [tried(partial(_read, scenario, text), None, notices) for text in told]
        settings.axes = tuple(choice for choice in read if choice is not None)
        settings.steps = scenario.first_map.steps
        if not settings.axes:
            settings.begin(query)
        for knob in (STEPS, SEEDS):
            if knob.name in query:
                default = getattr(settings, knob.name)
                value = tried(partial(knob.parse, query[knob.name]), default, notices)
                setattr(settings, knob.name, int(value))
        settings.engine = query.get("engine", LOCAL)
        settings.view = tried(partial(_view, query.get("view", VIEWS[0])), VIEWS[0], notices)
        settings.drawn = dict(settings.config)
        return settings

    def begin(self, given: Query) -> None:
        """The scenario's first map, but for the knobs that are given."""
        first = self.scenario.first_map
        self.config |= {name: v for name, v in first.knobs.items() if name not in given}
        self.axes, self.steps = first_axes(self.scenario, self.config), first.steps

    def use_preset(self, name: str) -> None:
        super().use_preset(name)
        self.begin({})
        self.turn(self.config)
        self.placed = {axis: self.placed.get(axis, 0) + 1 for axis in AXES}

    def start_over(self) -> None:
        super().start_over()
        self.begin({})
        self.turn(self.config)
        self.placed = {axis: self.placed.get(axis, 0) + 1 for axis in AXES}

    def put_axis(self, place: int, choice: AxisChoice | None) -> None:
        """Another axis at this place; None takes it away."""
        axes = list(self.axes)
        axes[place : place + 1] = [] if choice is None else [choice]
        self.axes = tuple(axes)
        name = AXES[place]
        self.placed[name] = self.placed.get(name, 0) + 1

    def swap(self) -> None:
        """Turn the map on its side."""
        first, second, *rest = self.axes
        self.axes = (second, first, *rest)
        self.placed = {axis: self.placed.get(axis, 0) + 1 for axis in AXES}

    def sweep(self) -> Sweep:
        """What `python -m models sweep` would compute with the same words. Raises BadInput."""
        axes = tuple(choice.axis(self.scenario) for choice in self.axes)
        return Sweep(
            self.scenario.name, dict(self.config), axes, self.steps, self.seeds, self.content
        )

    def query(self) -> dict[str, str]:
        told = super().query()
        told |= {name: choice.text for name, choice in zip(AXES, self.axes, strict=False)}
        told |= {"steps": str(self.steps), "seeds": str(self.seeds), "view": self.view}
        if self.engine != LOCAL:
            told["engine"] = self.engine
        if self.content is not None:
            told[OWN_DATA] = "1"
        return told


def _read(scenario: Scenario, text: str) -> AxisChoice | None:
    return AxisChoice.read(scenario, text)


def _view(text: str) -> str:
    if text not in VIEWS:
        raise BadInput(f"There is no view “{text}”; there are {', '.join(VIEWS)}.", field="view")
    return text
