"""Getting TensorFlow ready behind the first page."""

from __future__ import annotations

import gc
import sys
import threading
from functools import cache

from ..lazy import keras, tf
from .collector import held_off, settle
from .computing import set_up_tensorflow

# A thread that waits for something hands the interpreter on, and has it back only after this time
# if another is computing. A page waits some hundred times; Python's own 5 ms would add up.
SECONDS_OF_THE_INTERPRETER = 0.0005


def warm_up() -> None:
    """Import TensorFlow and Keras in a thread of their own, once in a process.

    To be called by whatever a page runs until then: each time, what has been loaded so far is
    taken out of the garbage collector's sight.
    """
    if loading().is_alive():
        gc.freeze()


@cache
def loading() -> threading.Thread:
    """The thread that does it."""
    sys.setswitchinterval(SECONDS_OF_THE_INTERPRETER)
    thread = threading.Thread(target=_import, name="nanatomy-warm-up", daemon=True)
    thread.start()
    return thread


def _import() -> None:
    with held_off():
        # Streamlit clears Keras's session after every script run. That drops TensorFlow's kernels,
        # those of all runs that are training, and a graph takes up to a second to be set up again.
        keras.backend.clear_session = _keep_session
        set_up_tensorflow()
        keras.optimizers.SGD  # noqa: B018  the access is the import
        tf.constant(0.0) + 1.0
        settle()


def _keep_session(free_memory: bool = True) -> None:
    """Nothing here makes Keras models one after another, so there is nothing to be cleared."""
