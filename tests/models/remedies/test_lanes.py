"""Lanes: several at once, one that compiles at a time, others' work in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from models.remedies.lanes import Lanes
from models.remedies.setting import PLAIN, TRACES


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


class End:
    def __init__(self) -> None:
        self.event = threading.Event()
        self.error: BaseException | None = None

    def __call__(self, error: BaseException | None) -> None:
        self.error = error
        self.event.set()


def test_one_compiles_at_a_time(pool: ThreadPoolExecutor) -> None:
    compiling, most = [0], [0]

    def lane() -> Any:
        for _ in range(5):
            yield TRACES
            compiling[0] += 1
            most[0] = max(most[0], compiling[0])
            time.sleep(0.01)
            compiling[0] -= 1
            yield PLAIN
            time.sleep(0.001)

    end = End()
    lanes = Lanes(pool, end)
    for _ in range(3):
        lanes.add(lane())
    assert end.event.wait(10)
    assert end.error is None
    assert most == [1]


def test_others_get_their_turn(pool: ThreadPoolExecutor) -> None:
    """While two endless lanes run on two workers, other work waits for a piece of each."""
    pieces: list[int] = []

    def lane() -> Any:
        while True:
            time.sleep(0.005)
            pieces.append(1)
            yield PLAIN

    end = End()
    lanes = Lanes(pool, end)
    lanes.add(lane())
    lanes.add(lane())
    waited = []
    for _ in range(21):
        asked = len(pieces)
        waited.append(pool.submit(lambda: len(pieces)).result(10) - asked)
    assert not end.event.is_set()
    lanes.stop()
    assert end.event.wait(10)
    assert sorted(waited)[len(waited) // 2] <= 3


def test_a_stopped_lane_is_closed(pool: ThreadPoolExecutor) -> None:
    closed = threading.Event()

    def lane() -> Any:
        try:
            while True:
                yield TRACES
        finally:
            closed.set()

    end = End()
    lanes = Lanes(pool, end)
    lanes.add(lane())
    lanes.stop()
    assert end.event.wait(10)
    assert end.error is None


def test_an_error_ends_all_lanes(pool: ThreadPoolExecutor) -> None:
    def good() -> Any:
        while True:
            yield PLAIN

    def bad() -> Any:
        yield PLAIN
        raise KeyError("lost")

    end = End()
    lanes = Lanes(pool, end)
    lanes.add(good())
    lanes.add(bad())
    assert end.event.wait(10)
    assert isinstance(end.error, KeyError)
