"""Trials: every remedy of a scenario tried on one run, results as they come."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import count

from ..scenarios.contract import Dataset, Scenario
from ..scenarios.knobs import Config
from ..training import live
from .candidates import Candidate, candidates, further_pairs
from .lanes import Lanes
from .result import Result, best_first
from .setting import Setting, Work
from .trial import trial
from .untouched import Untouched, untouched

LANES = 2  # one compiles while the other trains


class Trials:
    """Every method may be called from any thread and returns at once, unless it says otherwise.

    steps: how many each remedy is given; None: twice the step that broke, at least 200.
    proposed: names of remedies to try first (BadInput for one that the scenario has not).
    content: the file that the data set came from, where a person brought it.
    on_result: called with each result, in a worker's thread.
    executor: whose workers do it; by default those of the live runs.
    """

    def __init__(
        self,
        scenario: Scenario,
        config: Config,
        dataset: Dataset,
        *,
        content: bytes | None = None,
        steps: int | None = None,
        proposed: Sequence[str] = (),
        on_result: Callable[[Result], None] | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.setting = Setting(scenario, dict(config), dataset, content)
        self._tried = candidates(scenario, config, proposed)
        self._steps = steps
        self._on_result = on_result
        self._due = deque(self._tried)
        self._at_work: list[Candidate] = []
        self._results: list[Result] = []  # in the order in which they came, the untouched run first
        self._untouched: Untouched | None = None
        self._error = ""
        self._ended = False
        self._news = threading.Condition()
        self._lanes = Lanes(executor or live.pool, self._when_ended)

    # Steering.

    def start(self) -> None:
        self._lanes.add(self._first_lane())

    def stop(self) -> None:
        """End after the bursts under way; the results so far stay."""
        self._lanes.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it has ended; False if that took longer than `timeout` seconds."""
        with self._news:
            return self._news.wait_for(lambda: self._ended, timeout)

    # Looking.

    @property
    def untouched(self) -> Result | None:
        """The row of the run as it stands, once it is known."""
        with self._news:
            return self._results[0] if self._results else None

    @property
    def results(self) -> list[Result]:
        """The remedies tried so far, best first."""
        with self._news:
            return best_first(self._results[1:])

    @property
    def progress(self) -> tuple[int, int]:
        """Remedies done and in all; pairs may be added when nothing mends alone."""
        with self._news:
            return max(0, len(self._results) - 1), len(self._tried)

    @property
    def now(self) -> tuple[str, ...]:
        """Titles of what is being tried at the moment."""
        with self._news:
            return tuple(candidate.title for candidate in self._at_work)

    @property
    def running(self) -> bool:
        return not self._ended

    @property
    def error(self) -> str:
        """What went wrong with the trials themselves, in one line; empty if nothing did."""
        return self._error

    def __iter__(self) -> Iterator[Result]:
        """Results in the order in which they come, the untouched run first; blocks in between."""
        for place in count():
            with self._news:
                while len(self._results) <= place:
                    if self._ended:
                        return
                    self._news.wait()
                result = self._results[place]
            yield result

    # What the workers do.

    def _first_lane(self) -> Work[None]:
        base = yield from untouched(self.setting, self._steps)
        self._untouched = base
        self._add(base.result)
        self._open_lanes(LANES - 1)
        yield from self._lane(base)

    def _lane(self, base: Untouched) -> Work[None]:
        while (candidate := self._next()) is not None:
            result = yield from trial(self.setting, candidate, base)
            self._add(result, candidate)

    def _open_lanes(self, number: int) -> None:
        assert self._untouched is not None
        for _ in range(number):
            self._lanes.add(self._lane(self._untouched))

    def _next(self) -> Candidate | None:
        with self._news:
            if not self._due or self._lanes.stopped:
                return None
            candidate = self._due.popleft()
            self._at_work.append(candidate)
            return candidate

    def _add(self, result: Result, candidate: Candidate | None = None) -> None:
        with self._news:
            self._results.append(result)
            if candidate is not None:
                self._at_work.remove(candidate)
            pairs = self._pairs_due()
            self._due += pairs
            self._tried += pairs
            self._news.notify_all()
        if self._on_result is not None:
            self._on_result(result)
        if pairs:
            self._open_lanes(LANES - 1)

    def _pairs_due(self) -> list[Candidate]:
        """Pairs to try, when all has been tried once and nothing mends."""
        rows = self._results[1:]
        again = any(r.mends and not r.answers_another_question for r in rows)
        broke = self._results[0].first_bad_step is not None
        if self._due or self._at_work or again or not broke:
            return []
        failed = {
            r.name: r.steps if r.first_bad_step is None else r.first_bad_step
            for r in rows
            if "+" not in r.name and r.verdict != "could not be tried" and not r.mends
        }
        pairs = further_pairs(self.setting.scenario, self.setting.config, failed, self._tried)
        return [pair for pair in pairs if not any(pair.name == r.name for r in rows)]

    def _when_ended(self, error: BaseException | None) -> None:
        if error is not None:
            traceback.print_exception(error)
        with self._news:
            if error is not None:
                self._error = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            self._ended = True
            self._at_work.clear()
            self._news.notify_all()
