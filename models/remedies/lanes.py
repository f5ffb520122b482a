"""Lanes: long work cut into pieces, on workers that others use as well.

Each lane hands its worker back after every piece and queues again. Pieces that compile graphs take
seconds; of these one runs at a time, so that a worker is always left for others.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor

from .setting import TRACES, Work


class Lanes:
    """Thread-safe. `ended(error)` is called once, when the last lane has ended; a lane that fails
    stops the others, and its error is handed on."""

    def __init__(self, executor: Executor, ended: Callable[[BaseException | None], None]) -> None:
        self._executor = executor
        self._ended = ended
        self._lock = threading.Lock()
        self._alive = 0
        self.stopped = False
        self._error: BaseException | None = None
        self._tracing = False
        self._waiting: deque[Work[None]] = deque()

    def add(self, lane: Work[None]) -> None:
        with self._lock:
            self._alive += 1
        self._executor.submit(self._turn, lane, False)

    def stop(self) -> None:
        """Every lane ends after the piece that it is at."""
        with self._lock:
            self.stopped = True
            waiting, self._waiting = self._waiting, deque()
        for lane in waiting:
            self._end(lane)

    def _turn(self, lane: Work[None], traces: bool) -> None:
        error = None
        try:
            coming = None if self.stopped else next(lane, None)
        except Exception as raised:
            coming, error = None, raised
        if traces:
            self._pass_on()
        if coming is None or self.stopped:
            self._end(lane, error)
        elif coming is TRACES:
            self._when_nobody_traces(lane)
        else:
            self._executor.submit(self._turn, lane, False)

    def _when_nobody_traces(self, lane: Work[None]) -> None:
        with self._lock:
            if self._tracing:
                self._waiting.append(lane)
                return
            self._tracing = True
        self._executor.submit(self._turn, lane, True)

    def _pass_on(self) -> None:
        with self._lock:
            lane = self._waiting.popleft() if self._waiting else None
            self._tracing = lane is not None
        if lane is not None:
            self._executor.submit(self._turn, lane, True)

    def _end(self, lane: Work[None], error: BaseException | None = None) -> None:
        lane.close()
        if error is not None:
            with self._lock:
                self._error = self._error or error
            self.stop()
        with self._lock:
            self._alive -= 1
            last = self._alive == 0
        if last:
            self._ended(self._error)
