"""Registry of runs: who holds which run, and when an abandoned one is freed.

A run lives in the server; a session holds a lease on it. Losing the lease (tab closed, reloaded,
connection lost) pauses the run and starts a timer that frees it. A session that comes back with
the same key in time takes it up again.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

GRACE_SECONDS = 120.0


class Stoppable(Protocol):
    """Work that goes on beside a run, such as trials of remedies."""

    def stop(self) -> None: ...


class Pausable(Protocol):
    """What a registry may hold; every method returns at once."""

    @property
    def running(self) -> bool: ...

    def start(self) -> None: ...

    def pause(self) -> None: ...

    def close(self) -> None: ...


R = TypeVar("R", bound=Pausable)


@dataclass
class _Entry(Generic[R]):
    run: R | None = None
    beside: Stoppable | None = None
    holder: str | None = None
    was_running: bool = False
    timer: threading.Timer | None = field(default=None, repr=False)


class Registry(Generic[R]):
    """Thread-safe. `key` names a browser tab's run of one scenario, `holder` one lease of it."""

    def __init__(self, grace_seconds: float = GRACE_SECONDS) -> None:
        self.grace_seconds = grace_seconds
        self._entries: dict[str, _Entry[R]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def running(self) -> int:
        """How many runs are training at present."""
        with self._lock:
            return sum(bool(e.run and e.run.running) for e in self._entries.values())

    def acquire(self, key: str, holder: str) -> bool:
        """Take the lease of `key` unless somebody else holds it.

        A run that was training when its lease was lost goes on.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            if entry.holder not in (None, holder):
                return False
            entry.holder = holder
            if entry.timer:
                entry.timer.cancel()
                entry.timer = None
            resume, entry.was_running = entry.was_running, False
        if resume and entry.run:
            entry.run.start()
        return True

    def run(self, key: str) -> R | None:
        with self._lock:
            entry = self._entries.get(key)
        return entry.run if entry else None

    def put(self, key: str, run: R) -> None:
        """Give a leased key a new run; the old one is closed, and what went on beside it."""
        with self._lock:
            entry = self._entries[key]
            old, entry.run = entry.run, run
            beside, entry.beside = entry.beside, None
        if old:
            old.close()
        if beside:
            beside.stop()

    def beside(self, key: str) -> Stoppable | None:
        with self._lock:
            entry = self._entries.get(key)
        return entry.beside if entry else None

    def put_beside(self, key: str, work: Stoppable) -> None:
        """Keep work that belongs to a leased key's run; it is stopped with the lease."""
        with self._lock:
            entry = self._entries[key]
            old, entry.beside = entry.beside, work
        if old:
            old.stop()

    def release(self, key: str, holder: str) -> None:
        """Give the lease back: the run is paused, and freed unless somebody returns in time."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.holder != holder:
                return
            entry.holder = None
            if entry.run is not None:
                entry.was_running = entry.run.running
                entry.run.pause()
            if entry.beside is not None:
                entry.beside.stop()
            entry.timer = threading.Timer(self.grace_seconds, self._free, (key, entry))
            entry.timer.daemon = True
            entry.timer.start()

    def close(self) -> None:
        """Free everything at once (for tests and shutdown)."""
        for key, entry in list(self._entries.items()):
            entry.holder = None
            self._free(key, entry)

    def _free(self, key: str, entry: _Entry[R]) -> None:
        with self._lock:
            if entry.holder is not None or self._entries.get(key) is not entry:
                return
            del self._entries[key]
            if entry.timer:
                entry.timer.cancel()
        if entry.run:
            entry.run.close()
        if entry.beside:
            entry.beside.stop()
