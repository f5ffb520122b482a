"""Computing a part: its runs together where one graph can hold them, else one by one.

`run_part` is a plain function of its arguments, so that a part can be computed in any process, and
again where one was lost. What it gives does not depend on which runs it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..scenarios import scenario as scenario_named
from ..scenarios.contract import Dataset, Scenario
from ..scenarios.knobs import Config
from ..training.program import program_for
from .members import Ended, Member, Watch
from .plan import Part
from .results import RunResult
from .singly import run_singly
from .telling import Teller
from .together import run_together
from .vectorised import CannotMap


def run_part(part: Part, watch: Watch | None = None) -> list[RunResult]:
    """The results of all tasks of a part, or of those that ended before the watch stopped it."""
    watch = watch or Watch()
    chosen = scenario_named(part.scenario)
    results = []
    for members in _of_one_structure(chosen, part):
        teller = Teller(chosen)
        for ended in _run(chosen, members, part.steps, watch):
            result = teller.tell(ended)
            results.append(result)
            watch.ended(result)
    return results


def _of_one_structure(chosen: Scenario, part: Part) -> Iterator[list[Member]]:
    """A part's runs in groups that one program serves."""
    datasets: dict[Any, Dataset] = {}
    groups: dict[Any, list[Member]] = {}
    for task, config in zip(part.tasks, part.configs, strict=True):
        dataset = _load(chosen, config, part.content, datasets)
        generator = np.random.default_rng(int(config["seed"]))
        parameters = chosen.initialise(config, dataset, generator)
        structure = (
            tuple(config[knob.name] for knob in chosen.knobs if knob.stage == "graph"),
            tuple((name, array.shape) for name, array in parameters.items()),
            tuple((name, array.shape) for name, array in dataset.train.items()),
        )
        groups.setdefault(structure, []).append(Member(task, config, dataset, parameters))
    yield from groups.values()


def _load(
    chosen: Scenario, config: Config, content: bytes | None, known: dict[Any, Dataset]
) -> Dataset:
    """A run's data; equal data are one object."""
    settings = tuple(config[knob.name] for knob in chosen.knobs if knob.stage == "data")
    if settings not in known:
        dataset = chosen.load(config, content)
        arrays = [*dataset.train.values(), *dataset.probe.values()]
        known[settings] = known.setdefault(tuple(a.tobytes() for a in arrays), dataset)
    return known[settings]


def _run(chosen: Scenario, members: list[Member], steps: int, watch: Watch) -> Iterator[Ended]:
    first = members[0]
    if any(first.config[check] for check in chosen.checks):  # one run's check would stop all
        yield from run_singly(chosen, members, steps, watch)
        return
    shapes = {name: array.shape for name, array in first.parameters.items()}
    program = program_for(chosen, first.config, first.dataset, shapes)
    try:
        yield from run_together(program, members, steps, watch)
    except CannotMap:
        yield from run_singly(chosen, members, steps, watch)
