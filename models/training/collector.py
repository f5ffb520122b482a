"""Python's garbage collector, kept from TensorFlow's objects.

There are a million of them, hardly any becomes garbage, and to look through them takes some tenths
of a second with the interpreter locked. Streamlit has that done after every run of a script.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holding = 0


def settle() -> None:
    """Take what exists now out of the collector's sight."""
    gc.collect()
    gc.freeze()


@contextmanager
def held_off() -> Iterator[None]:
    """No collection by Python itself, in any thread, while many objects are made that stay."""
    global _holding  # noqa: PLW0603
    with _lock:
        _holding += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _holding -= 1
            if not _holding:
                gc.enable()
