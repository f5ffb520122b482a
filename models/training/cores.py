"""One core for each run: the way to the most steps a second.

Left to itself TensorFlow spreads each small operation over all cores, and much of the time goes
into handing the pieces out. Runs side by side, each on a core, are up to twice as fast, and a run
alone is no slower.
"""

from __future__ import annotations

import os

from ..lazy import tf


def one_core_each() -> None:
    """Have TensorFlow compute every operation on one core. Without effect where it has begun to
    compute already."""
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
    except RuntimeError:  # too late
        return


def parts_at_once() -> int:
    """How many parts of a sweep this process should work on at a time."""
    if tf.config.threading.get_intra_op_parallelism_threads() != 1:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
