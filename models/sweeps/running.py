"""A sweep under way: parts go out, results come in, anybody may look or stop it."""

from __future__ import annotations

import itertools
import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..scenarios.knobs import KnobValue
from .engines import Engine, LocalEngine, Results
from .file import SweepFile
from .members import TurnTaking
from .plan import Index, Part, Sweep, Task, parts
from .results import RunResult

SECONDS_BETWEEN_LOOKS = 0.2
ATTEMPTS = 3  # at a part that was lost on the way

Status = Literal["ready", "running", "stopped", "done", "failed"]


@dataclass(frozen=True)
class Cell:
    """A cell of the map: its settings and what is known of its runs, by seed."""

    index: Index
    settings: dict[str, KnobValue]
    runs: tuple[RunResult, ...]


@dataclass(frozen=True)
class SweepView:
    """A sweep at one moment.

    `survived` holds the runs under way and the finite steps that each has had. `done` is the share
    of the work from 0 to 1; `seconds_left` is None as long as nothing can be told.
    """

    status: Status
    message: str  # what went wrong
    results: dict[Task, RunResult]
    survived: dict[Task, int]
    runs: int  # in all
    done: float
    seconds: float  # since it was started last
    seconds_left: float | None

    @property
    def failed(self) -> int:
        return sum(bool(result.failed) for result in self.results.values())


class SweepRun:
    """Computes a sweep in a thread of its own; every method may be called from any thread.

    With a file, results are kept there as they come, and those that it holds already are not
    computed again. `engine` is closed with the run.
    """

    def __init__(
        self, sweep: Sweep, engine: Engine | None = None, file: Path | None = None
    ) -> None:
        self.sweep = sweep
        self._engine = engine or LocalEngine()
        self._file = SweepFile(file, sweep) if file else None
        self._lock = threading.Lock()
        self._results: dict[Task, RunResult] = dict(self._file.results) if self._file else {}
        self._survived: dict[Task, int] = {}
        self._status: Status = "ready"
        self._message = ""
        self._watch = _Watch(self)
        self._thread: threading.Thread | None = None
        self._again = False  # whether to go on as soon as it has stopped
        self._began = self._ended = 0.0
        self._work_before = 0.0

    @property
    def status(self) -> Status:
        return self._status

    @property
    def running(self) -> bool:
        """False also while it is about to stop."""
        return self._status == "running" and (self._again or not self._watch.stopped.is_set())

    def start(self, engine: Engine | None = None) -> None:
        """Begin, or go on after a stop, on another engine if one is given; runs that failed are
        tried again."""
        with self._lock:
            if self._status == "running":  # perhaps about to stop
                self._again = self._watch.stopped.is_set()
                unused = engine
            else:
                unused = self._engine if engine is not None else None
                self._engine = engine or self._engine
                if self._status != "done" or self._left():
                    self._begin()
        if unused is not None:
            unused.close()

    def stop(self) -> None:
        """Stop after the burst under way; what has ended is kept."""
        self._again = False
        self._watch.stopped.set()

    def close(self) -> None:
        """Stop for good."""
        self.stop()
        self._engine.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it has come to an end, within so many seconds."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self._status != "running"

    def view(self) -> SweepView:
        with self._lock:
            work = self._work()
            seconds = (self._ended or time.monotonic()) - self._began
            new, left = work - self._work_before, 1 - work
            return SweepView(
                status=self._status,
                message=self._message,
                results=dict(self._results),
                survived=dict(self._survived),
                runs=self._runs,
                done=work,
                seconds=seconds,
                seconds_left=seconds * left / new if new > 0 else None,
            )

    def cells(self) -> list[Cell]:
        """Every cell of the grid, the last axis running fastest, with its runs so far by seed."""
        with self._lock:
            results = dict(self._results)
        cells = []
        for index in itertools.product(*(range(n) for n in self.sweep.shape)):
            tasks = (Task(index, seed) for seed in self.sweep.seed_numbers())
            runs = tuple(results[task] for task in tasks if task in results)
            cells.append(Cell(index, self.sweep.settings(index), runs))
        return cells

    # What the keeper's thread does.

    def _left(self) -> int:
        """How many runs are to be computed, or computed again."""
        return self._runs - sum(not result.failed for result in self._results.values())

    def _begin(self) -> None:
        """With the lock held."""
        self._status, self._message, self._again = "running", "", False
        self._results = {t: r for t, r in self._results.items() if not r.failed}
        self._survived = {}
        self._watch = _Watch(self)
        self._began, self._ended, self._work_before = time.monotonic(), 0.0, self._work()
        self._thread = threading.Thread(
            target=self._guarded, name="nanatomy-sweep-keeper", daemon=True
        )
        self._thread.start()

    def _guarded(self) -> None:
        try:
            status, message = self._keep_at_it()
        except Exception as error:
            status, message = "failed", reason(error)
            traceback.print_exc()
        with self._lock:
            self._status, self._message, self._ended = status, message, time.monotonic()
            self._survived = {}
            if self._again:
                self._begin()

    def _keep_at_it(self) -> tuple[Status, str]:
        queue = deque((part, 1) for part in parts(self.sweep, self._results))
        out: dict[Results, tuple[Part, int]] = {}
        while queue or out:
            problem = self._engine.problem()
            if problem:
                self._give_up([part for part, _ in (*out.values(), *queue)], problem)
                return "failed", problem
            if self._watch.stopped.is_set():
                self._recall(out)
                return "stopped", ""
            while queue and len(out) < self._engine.parallel:
                part, attempt = queue.popleft()
                out[self._engine.submit(part, self._watch)] = part, attempt
            for future in wait(out, SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED).done:
                part, attempt = out.pop(future)
                if not self._take(future, part) and not self._watch.stopped.is_set():
                    if attempt < ATTEMPTS:
                        queue.appendleft((part, attempt + 1))
                    else:
                        self._give_up([part], f"lost {ATTEMPTS} times with its worker")
        if len(self._results) < self._runs:  # a part that was stopped gives what it has
            return "stopped", ""
        failed = sum(bool(result.failed) for result in self._results.values())
        return "done", f"{failed} of {self._runs} runs could not be computed." if failed else ""

    def _take(self, future: Results, part: Part) -> bool:
        """What a part gave, or why it gave nothing; False where it was lost."""
        try:
            self._add(future.result())
        except CancelledError:
            return False
        except Exception as error:
            self._give_up([part], reason(error))
        return True

    def _recall(self, out: dict[Results, tuple[Part, int]]) -> None:
        """What has ended in the parts under way is kept, the rest is left undone."""
        # A future that an engine cancelled while it closed never tells those who wait for it.
        left = [future for future in out if not future.cancel() and not future.cancelled()]
        for future in wait(left).done:
            if not future.cancelled() and future.exception() is None:
                self._add(future.result())

    def _give_up(self, lost: Iterable[Part], why: str) -> None:
        tasks = (task for part in lost for task in part.tasks)
        self._add([RunResult(task, failed=why) for task in tasks if task not in self._results])

    def _add(self, results: Iterable[RunResult]) -> None:
        with self._lock:
            new = [result for result in results if result.task not in self._results]
            for result in new:
                self._results[result.task] = result
                self._survived.pop(result.task, None)
            if self._file and new:
                self._file.add(new)

    def _still_finite(self, tasks: Sequence[Task], steps: int) -> None:
        with self._lock:
            self._survived.update(dict.fromkeys(tasks, steps))

    @property
    def _runs(self) -> int:
        return math.prod(self.sweep.shape) * self.sweep.seeds

    def _work(self) -> float:
        """Share of the steps that need not be computed any more."""
        steps = len(self._results) * self.sweep.steps + sum(self._survived.values())
        return steps / (self._runs * self.sweep.steps)


class _Watch(TurnTaking):
    def __init__(self, run: SweepRun) -> None:
        super().__init__()
        self._run = run

    def ended(self, result: RunResult) -> None:
        self._run._add([result])

    def survived(self, tasks: Sequence[Task], steps: int) -> None:
        self._run._still_finite(tasks, steps)


def reason(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
