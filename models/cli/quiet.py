"""TensorFlow loaded without its notes about the machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..lazy import tf
from ..training.computing import set_up_tensorflow

LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"


def load_tensorflow() -> None:
    """Import TensorFlow quietly; whoever sets TF_CPP_MIN_LOG_LEVEL sees what it has to say."""
    if LOG_LEVEL not in os.environ:
        os.environ[LOG_LEVEL] = "3"
        with _native_stderr_closed():  # while it is being imported it heeds no log level
            _ = tf.constant
    set_up_tensorflow()


@contextmanager
def _native_stderr_closed() -> Iterator[None]:
    """What C++ writes to file descriptor 2 is dropped; Python's exceptions are not."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
