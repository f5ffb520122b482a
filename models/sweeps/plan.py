"""What a sweep computes, and in which order: a coarse map first, then finer ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import BadInput
from ..scenarios import scenario as scenario_named
from ..scenarios.contract import Scenario
from ..scenarios.knobs import AnyKnob, Config, KnobValue, Number
from .axes import Axis, check_axes

MOST_SEEDS = 8
COARSE_CELLS = 64  # of the first map, at most
WIDEST_PART = 64  # runs that are computed together, at most
NARROW_PART = 16  # seeds with fewer cells than this are computed together

Index = tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """One run: a cell of the grid, by its place on each axis, with one of the seeds."""

    index: Index
    seed: int


@dataclass(frozen=True)
class Part:
    """Runs that are sent out together; may be computed anywhere, any number of times.

    `configs` are the tasks' complete knobs; `content` is the person's own data, if any.
    """

    scenario: str
    tasks: tuple[Task, ...]
    configs: tuple[Config, ...]
    steps: int
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Sweep:
    """A grid over one to three knobs; the other knobs stand as in `config`.

    Every cell is run for `steps` steps, or to its first bad step, from each of the seeds
    config["seed"], config["seed"] + 1, … (`seeds` of them).
    """

    scenario: str
    config: Config
    axes: tuple[Axis, ...]
    steps: int = 1000
    seeds: int = 1
    content: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        chosen = scenario_named(self.scenario)
        check_axes(chosen, self.axes)
        check_seeds(chosen, self.config, self.seeds)
        if self.steps < 1:
            raise BadInput(f"{self.steps} steps; give at least 1.", field="steps")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.values) for axis in self.axes)

    def settings(self, index: Index) -> dict[str, KnobValue]:
        """The axes' knobs at a cell."""
        return {axis.knob: axis.values[i] for axis, i in zip(self.axes, index, strict=True)}

    def run_config(self, task: Task) -> Config:
        """All knobs of one run: what a `Trainer` needs to repeat it."""
        config = self.config | self.settings(task.index)
        return config | {"seed": task.seed, "on_bad": "halt"}

    def seed_numbers(self) -> range:
        first = int(self.config["seed"])
        return range(first, first + self.seeds)

    def tasks(self) -> list[Task]:
        """Every run of the sweep, coarse cells first."""
        return [
            Task(index, seed)
            for level in levels(self.shape)
            for seed in self.seed_numbers()
            for index in level
        ]


def check_seeds(chosen: Scenario, config: Mapping[str, KnobValue], seeds: int) -> None:
    if not 1 <= seeds <= MOST_SEEDS:
        raise BadInput(f"{seeds} seeds; give from 1 to {MOST_SEEDS}.", field="seeds")
    chosen.knob("seed").check(int(config["seed"]) + seeds - 1)  # type: ignore[arg-type]


def levels(shape: tuple[int, ...]) -> Iterator[list[Index]]:
    """The cells of a grid in lists: first those of a coarse grid that takes in every end, then what
    each halving of its distances adds."""
    per_axis = max(2, math.floor(COARSE_CELLS ** (1 / len(shape)) + 1e-9))

    def places(n: int, stride: int) -> list[int]:
        return sorted({*range(0, n, stride), n - 1})

    stride = 1
    while any(len(places(n, stride)) > per_axis for n in shape):
        stride *= 2
    seen: set[Index] = set()
    while stride:
        product = itertools.product(*(places(n, stride) for n in shape))
        level = [index for index in product if index not in seen]
        seen.update(level)
        if level:
            yield level
        stride //= 2


def parts(sweep: Sweep, done: Collection[Task] = ()) -> list[Part]:
    """The tasks that are not done, in parts: a level of the grid after the other, and in each the
    first seed first. Runs of different structure are kept apart, as they cannot be computed
    together."""
    knobs = [k for k in scenario_named(sweep.scenario).knobs if _shapes_graph(k)]
    cut: list[Part] = []
    for level in levels(sweep.shape):
        groups: dict[Any, list[Task]] = {}
        for index in level:
            config = sweep.config | sweep.settings(index)
            groups.setdefault(tuple(config[k.name] for k in knobs), []).append(Task(index, 0))
        for group in groups.values():
            left = [
                task
                for seed in sweep.seed_numbers()
                for task in (replace(task, seed=seed) for task in group)
                if task not in done
            ]
            # Seeds mostly have data of their own; runs that share their data are a little faster.
            waves = _by_seed(left) if len(group) >= NARROW_PART else [left]
            for wave in waves:
                count = math.ceil(len(wave) / WIDEST_PART)  # of parts, about equally wide
                cut += [_part(sweep, wave[i::count]) for i in range(count)]
    return cut


def _shapes_graph(knob: AnyKnob) -> bool:
    """Whether runs that differ in this knob surely need graphs of their own."""
    if knob.stage == "data":
        return isinstance(knob, Number) and knob.integer and knob.name != "seed"
    return knob.stage == "graph"


def _by_seed(tasks: list[Task]) -> list[list[Task]]:
    return [list(same) for _, same in itertools.groupby(tasks, lambda task: task.seed)]


def _part(sweep: Sweep, tasks: list[Task]) -> Part:
    configs = tuple(sweep.run_config(task) for task in tasks)
    return Part(sweep.scenario, tuple(tasks), configs, sweep.steps, sweep.content)
