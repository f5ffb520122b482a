"""The best setting among those that stay finite, by Optuna.

Trials are asked for in batches and computed together. How far a broken run came is given to the
sampler as a constraint, so that it learns where training stays finite, too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BadInput
from ..scenarios import scenario as scenario_named
from ..scenarios.knobs import Config, KnobValue, Number
from .axes import NO_AXIS
from .members import Watch
from .part import run_part
from .plan import Part, Task, check_seeds
from .results import RunResult

TOGETHER = 16  # trials that are asked for at once
MOST_TRIALS = 1000
STEPS_LOST = "share of the steps lost"
SAMPLER_SEED = 0


@dataclass(frozen=True)
class Range:
    """A number-valued knob and the ends between which it may move."""

    knob: str
    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Trial:
    """One setting and its runs, by seed; `metric` is their mean, None where one was not finite."""

    number: int
    settings: dict[str, KnobValue]
    runs: tuple[RunResult, ...]
    metric: float | None


@dataclass(frozen=True)
class Optimisation:
    """The scenario's first metric, made as large as possible over some ranges.

    Raises BadInput where a range does not fit its knob, or Optuna is not installed.
    """

    scenario: str
    config: Config
    ranges: tuple[Range, ...]
    steps: int = 1000
    seeds: int = 1
    trials: int = 64
    content: bytes | None = None

    def __post_init__(self) -> None:
        _optuna()
        chosen = scenario_named(self.scenario)
        check_seeds(chosen, self.config, self.seeds)
        if not 1 <= self.trials <= MOST_TRIALS:
            raise BadInput(f"{self.trials} trials; give from 1 to {MOST_TRIALS}.", field="trials")
        if not self.ranges:
            raise BadInput("Nothing to optimise; give at least one knob.", field="ranges")
        for given in self.ranges:
            knob = chosen.knob(given.knob)
            if not isinstance(knob, Number) or knob.name in NO_AXIS:
                raise BadInput(f"{knob.name} has no range to optimise over.", field=knob.name)
            if not knob.check(given.low) < knob.check(given.high):
                raise BadInput(f"{knob.name}: give the low end first.", field=knob.name)

    def run(self, watch: Watch | None = None) -> Iterator[list[Trial]]:
        """Trials as they come, a batch at a time, until there are enough or the watch stops."""
        watch = watch or Watch()
        optuna = _optuna()
        sampler = optuna.samplers.TPESampler(seed=SAMPLER_SEED, constant_liar=True)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        left = self.trials
        while left > 0:
            asked = [study.ask() for _ in range(min(TOGETHER, left))]
            left -= len(asked)
            trials = self._compute([(t.number, self._suggested(t)) for t in asked], watch)
            if watch.stopped.is_set():
                return
            for asked_trial, trial in zip(asked, trials, strict=True):
                asked_trial.set_constraint(STEPS_LOST, self._steps_lost(trial.runs))
                study.tell(asked_trial, _value(trial.runs))
            yield trials

    def _suggested(self, trial: Any) -> dict[str, KnobValue]:
        settings: dict[str, KnobValue] = {}
        for given in self.ranges:
            knob = scenario_named(self.scenario).knob(given.knob)
            whole = isinstance(knob, Number) and knob.integer
            suggest = trial.suggest_int if whole else trial.suggest_float
            settings[knob.name] = suggest(knob.name, given.low, given.high, log=given.log)
        return settings

    def _compute(
        self, asked: Sequence[tuple[int, dict[str, KnobValue]]], watch: Watch
    ) -> list[Trial]:
        first = int(self.config["seed"])
        seeds = range(first, first + self.seeds)
        tasks = tuple(Task((i,), seed) for seed in seeds for i in range(len(asked)))
        configs = tuple(
            self.config | asked[task.index[0]][1] | {"seed": task.seed, "on_bad": "halt"}
            for task in tasks
        )
        part = Part(self.scenario, tasks, configs, self.steps, self.content)
        results = sorted(run_part(part, watch), key=lambda result: result.task.seed)
        trials = []
        for i, (number, settings) in enumerate(asked):
            runs = tuple(result for result in results if result.task.index == (i,))
            finite = all(run.finite and math.isfinite(run.metric) for run in runs)
            trials.append(Trial(number, settings, runs, _value(runs) if finite else None))
        return trials

    def _steps_lost(self, runs: Sequence[RunResult]) -> float:
        """The share of the steps that the runs did not reach; at most 0 where all are finite."""
        reached = [self.steps if run.first_bad_step is None else run.first_bad_step for run in runs]
        lost = 1 - statistics.fmean(reached) / self.steps
        broken = any(not run.finite or not math.isfinite(run.metric) for run in runs)
        return max(lost, 1 / self.steps) if broken else 0.0


def _value(runs: Sequence[RunResult]) -> float:
    """Mean metric of the runs that have one."""
    metrics = [run.metric for run in runs if math.isfinite(run.metric)]
    return statistics.fmean(metrics) if metrics else 0.0


def best(trials: Sequence[Trial]) -> Trial | None:
    """The finite trial with the largest metric."""
    finite = [trial for trial in trials if trial.metric is not None]
    return max(finite, key=lambda trial: trial.metric or 0.0, default=None)


def _optuna() -> Any:
    try:
        import optuna  # noqa: PLC0415  optional
    except ImportError:
        raise BadInput(
            "Optimising needs the package optuna; install it with “pip install optuna”.",
            field="optimise",
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
