"""One core for each part: the way to the most steps a second.

Left to itself TensorFlow spreads each small operation over all cores, and most of the time goes
into handing the pieces out: parts side by side, each on a core, give about twice as much.
"""

from __future__ import annotations

import os

from ..lazy import tf


def one_core_each() -> None:
    """Have TensorFlow compute every operation on one core; for processes that compute nothing but
    sweeps. Without effect where TensorFlow has begun to compute already."""
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
    except RuntimeError:  # too late
        return


def parts_at_once() -> int:
    """How many parts this process should work on at a time."""
    if tf.config.threading.get_intra_op_parallelism_threads() != 1:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
