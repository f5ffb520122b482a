"""The boundary of one knob: its smallest or largest value that stays finite.

Bisection with more than one point at a time: as many runs can be computed together for little more
than the price of one, each round cuts the bracket by `POINTS` + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ..errors import BadInput
from ..scenarios import scenario as scenario_named
from ..scenarios.knobs import Config, KnobValue, Number, format_number
from .axes import NO_AXIS
from .members import Watch
from .part import run_part
from .plan import Part, Task, check_seeds
from .results import RunResult

POINTS = 15  # values tried in a round: four bisections at once
NEARNESS = 1e-3  # of the bracket's ends in the end, relative (logarithmic) or to the whole range


@dataclass(frozen=True)
class Boundary:
    """Where a knob's finite values begin or end.

    boundary: the finite end of the `bracket` (low, high), whose other end breaks; None where every
        value that was tried is finite, or every one breaks (`finite_side` is then "everywhere" or
        "nowhere", the bracket the whole range).
    finite_side: "above" where the values from the boundary upwards are finite, else "below".
    mechanism: why the other end breaks.
    tried: value → first bad step of each seed, None where all steps were finite.
    """

    knob: str
    boundary: float | None
    finite_side: Literal["above", "below", "everywhere", "nowhere"]
    bracket: tuple[float, float]
    steps: int
    seeds: int
    mechanism: str
    tried: Mapping[float, tuple[int | None, ...]]

    def as_dict(self) -> dict[str, Any]:
        """Everything but the values tried."""
        return {
            "knob": self.knob,
            "boundary": self.boundary,
            "finite_side": self.finite_side,
            "bracket": list(self.bracket),
            "steps": self.steps,
            "seeds": self.seeds,
            "mechanism": self.mechanism,
        }


def find_boundary(
    scenario: str,
    config: Config,
    knob: str,
    *,
    low: float | None = None,
    high: float | None = None,
    steps: int = 1000,
    seeds: int = 1,
    content: bytes | None = None,
    watch: Watch | None = None,
    after_round: Callable[[int, int], None] = lambda done, rounds: None,
) -> Boundary:
    """Between `low` and `high`, by default the knob's own ends; beyond them is allowed, as a
    boundary may lie there. A value counts as finite where all seeds stay finite for `steps` steps.

    Raises BadInput: no number-valued knob, an empty range, or a range that breaks at both ends and
    is finite between them, which has two boundaries; InterruptedError where the watch stopped it.
    """
    search = _Search(
        scenario,
        config,
        knob,
        low=low,
        high=high,
        steps=steps,
        seeds=seeds,
        content=content,
        watch=watch or Watch(),
    )
    bracket = (search.low, search.high)
    search.try_values((*bracket, *search.between(*bracket)))
    side = search.side()
    if side is None:
        everywhere = search.finite(search.low)
        word: Literal["everywhere", "nowhere"] = "everywhere" if everywhere else "nowhere"
        return search.told(None, word, bracket)
    bracket = search.bracket(side)
    rounds, done = search.rounds_from(bracket), 0
    while inner := search.between(*bracket):
        after_round(done, max(rounds, done + 1))
        search.try_values(inner)
        bracket, done = search.bracket(side), done + 1
    return search.told(bracket[0] if side == "below" else bracket[1], side, bracket)


def in_words(found: Boundary, config: Config, at: Sequence[str] = ("learning_rate",)) -> str:
    """`epsilon ≥ 6.1e-8 at learning rate 0.1, 5000 steps, 8 of 8 seeds`, and what lies beyond.

    `at`: the other knobs whose values are told.
    """
    told = [
        f"{name.replace('_', ' ')} {_as_text(config[name])}" for name in at if name != found.knob
    ]
    circumstances = f"{found.steps} steps, {found.seeds} of {found.seeds} seeds"
    circumstances = f"at {', '.join([*told, circumstances])}" if told else f"for {circumstances}"
    low, high = (f"{end:.4g}" for end in found.bracket)
    if found.boundary is None:
        what = "finite" if found.finite_side == "everywhere" else f"broken ({found.mechanism})"
        return f"{found.knob} is {what} at every value tried from {low} to {high}, {circumstances}"
    sign, beyond = ("≥", low) if found.finite_side == "above" else ("≤", high)
    return (
        f"{found.knob} {sign} {found.boundary:.6g} {circumstances}\n"
        f"breaks at {beyond}: {found.mechanism}"
    )


def _as_text(value: KnobValue) -> str:
    return format_number(value) if type(value) in (int, float) else str(value)  # type: ignore[arg-type]


class _Search:
    def __init__(
        self,
        scenario: str,
        config: Config,
        knob: str,
        *,
        low: float | None,
        high: float | None,
        steps: int,
        seeds: int,
        content: bytes | None,
        watch: Watch,
    ) -> None:
        chosen = scenario_named(scenario)
        found = chosen.knob(knob)
        if not isinstance(found, Number) or knob in NO_AXIS:
            raise BadInput(f"{knob} has no boundary; give a knob with a range.", field="knob")
        check_seeds(chosen, config, seeds)
        self.low = found.low if low is None else low
        self.high = found.high if high is None else high
        if not self.low < self.high:
            raise BadInput(
                f"{format_number(self.low)} is not below {format_number(self.high)}; give the low "
                "end first.",
                field=knob,
            )
        self.log = found.scale == "log"
        if self.log and self.low <= 0:
            raise BadInput(f"{knob}: give a low end above 0.", field=knob)
        self.scenario, self.config, self.knob, self.integer = scenario, config, knob, found.integer
        self.steps, self.seeds, self.content, self.watch = steps, seeds, content, watch
        self.results: dict[float, list[RunResult]] = {}

    def try_values(self, values: Iterable[float]) -> None:
        new = [value for value in values if value not in self.results]
        first = int(self.config["seed"])
        tasks = [
            Task((i,), seed) for seed in range(first, first + self.seeds) for i in range(len(new))
        ]
        configs = tuple(
            self.config
            | {self.knob: self._value(new[t.index[0]]), "seed": t.seed, "on_bad": "halt"}
            for t in tasks
        )
        part = Part(self.scenario, tuple(tasks), configs, self.steps, self.content)
        for result in sorted(run_part(part, self.watch), key=lambda r: r.task.seed):
            self.results.setdefault(new[result.task.index[0]], []).append(result)
        if self.watch.stopped.is_set():
            raise InterruptedError(f"the search for the boundary of {self.knob} was stopped")

    def finite(self, value: float) -> bool:
        return all(result.finite for result in self.results[value])

    def side(self) -> Literal["above", "below"] | None:
        """Which end is finite; None where there is no boundary."""
        low, high = self.finite(self.low), self.finite(self.high)
        if low != high:
            return "below" if low else "above"
        others = [value for value in self.results if self.finite(value) != low]
        if not others:
            return None
        ends = "is finite" if low else "breaks"
        raise BadInput(
            f"{self.knob} {ends} at both ends, {format_number(self.low)} and "
            f"{format_number(self.high)}, but not at {format_number(others[0])}; take that for one "
            "of the ends.",
            field=self.knob,
        )

    def bracket(self, side: str) -> tuple[float, float]:
        """The neighbours, one finite and one not, that are nearest to the finite end."""
        values = sorted(self.results, reverse=side == "above")
        for finite, broken in pairwise(values):
            if not self.finite(broken):
                return (finite, broken) if side == "below" else (broken, finite)
        raise AssertionError("one end is finite and the other is not")

    def between(self, low: float, high: float) -> list[float]:
        """The values to try next; none where the bracket is narrow enough."""
        narrow = low * (1 + NEARNESS) if self.log else low + NEARNESS * (self.high - self.low)
        if high <= narrow and not self.integer:
            return []
        values = (np.geomspace if self.log else np.linspace)(low, high, POINTS + 2)[1:-1]
        if self.integer:
            values = np.unique(np.round(values))
        return [float(value) for value in values if low < value < high]

    def rounds_from(self, bracket: tuple[float, float]) -> int:
        """About how many rounds it will take."""
        low, high = bracket
        if self.log:
            cuts = np.log(high / low) / np.log1p(NEARNESS)
        else:
            cuts = (high - low) / (1 if self.integer else NEARNESS * (self.high - self.low))
        return max(1, int(np.ceil(np.log(max(cuts, 1)) / np.log(POINTS + 1))))

    def told(
        self,
        boundary: float | None,
        side: Literal["above", "below", "everywhere", "nowhere"],
        bracket: tuple[float, float],
    ) -> Boundary:
        broken = bracket[0] if side == "above" else bracket[1]
        mechanisms = [r.mechanism for r in self.results[broken] if r.mechanism]
        return Boundary(
            knob=self.knob,
            boundary=boundary,
            finite_side=side,
            bracket=bracket,
            steps=self.steps,
            seeds=self.seeds,
            mechanism=mechanisms[0] if mechanisms else "",
            tried={v: tuple(r.first_bad_step for r in rs) for v, rs in self.results.items()},
        )

    def _value(self, value: float) -> float | int:
        return int(value) if self.integer else value
