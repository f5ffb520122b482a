"""Getting TensorFlow ready behind the first page."""

from __future__ import annotations

import gc
import threading
from functools import cache

from ..lazy import keras, tf
from .cores import one_core_each


@cache
def warm_up() -> threading.Thread:
    """Import TensorFlow and Keras in a thread of their own, once in a process."""
    thread = threading.Thread(target=_import, name="nanatomy-warm-up", daemon=True)
    thread.start()
    return thread


def _import() -> None:
    one_core_each()
    keras.optimizers.SGD  # noqa: B018  the access is the import
    tf.constant(0.0) + 1.0
    settle()


def settle() -> None:
    """Take what exists now out of the garbage collector's sight.

    Streamlit collects all generations after every script run; with TensorFlow's objects to look
    through that takes about 0.4 s with the interpreter locked, and training starves.
    """
    gc.collect()
    gc.freeze()
