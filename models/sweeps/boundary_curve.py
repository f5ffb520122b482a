"""The boundary of one knob at several values of another: a curve, each of its points measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BadInput
from ..scenarios.knobs import Config, KnobValue
from .background import Background
from .boundary import Boundary, find_boundary

MOST_POINTS = 9


@dataclass(frozen=True)
class Point:
    """The boundary with `settings` changed; None, and the reason, where there is none to tell."""

    settings: dict[str, KnobValue]
    found: Boundary | None
    reason: str = ""


@dataclass(frozen=True)
class Search:
    """What is asked: the boundary of `knob` with the other knobs as in `config`, then along
    `other`, if one is named, at `values` of it."""

    scenario: str
    config: Config
    knob: str
    low: float
    high: float
    steps: int
    seeds: int
    other: str = ""
    values: tuple[KnobValue, ...] = ()
    content: bytes | None = None


class BoundaryCurve(Background):
    """`answer`: the boundary at the settings as they stand. `points`: along the other knob, in the
    order in which they were found; the answer is among them where its setting is."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.answer: Boundary | None = None
        self.points: tuple[Point, ...] = ()
        self._rounds = (0, 0)
        self._places = 1 + len(self._others())
        super().__init__()

    @property
    def progress(self) -> tuple[float, str]:
        found = len(self.points) if self.search.other else int(self.answer is not None)
        done, rounds = self._rounds
        share = (found + done / max(rounds, 1)) / self._places
        return min(share, 1.0), f"{found} of {self._places} points found"

    def work(self) -> None:
        search = self.search
        self.answer = self._find({})
        if not search.other:
            return
        self._add(Point({search.other: search.config[search.other]}, self.answer))
        for value in self._others():
            try:
                self._add(Point({search.other: value}, self._find({search.other: value})))
            except BadInput as error:
                self._add(Point({search.other: value}, None, error.sentence))

    def _others(self) -> list[KnobValue]:
        search = self.search
        return [v for v in search.values if v != search.config.get(search.other)]

    def _find(self, changes: dict[str, KnobValue]) -> Boundary:
        search = self.search
        self._rounds = (0, 0)
        return find_boundary(
            search.scenario,
            search.config | changes,
            search.knob,
            low=search.low,
            high=search.high,
            steps=search.steps,
            seeds=search.seeds,
            content=search.content,
            watch=self.watch,
            after_round=self._after_round,
        )

    def _after_round(self, done: int, rounds: int) -> None:
        self._rounds = (done, rounds)

    def _add(self, point: Point) -> None:
        self.points = (*self.points, point)


def spread(values: Sequence[KnobValue], most: int = MOST_POINTS) -> tuple[KnobValue, ...]:
    """At most so many of the values, evenly spread, the first and the last among them."""
    count = min(most, len(values))
    if count < 2:
        return tuple(values[:1])
    last = len(values) - 1
    return tuple(values[round(i * last / (count - 1))] for i in range(count))
