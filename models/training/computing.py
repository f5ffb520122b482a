"""How TensorFlow computes in programs of our own; a library must leave this to its user."""

from __future__ import annotations

import os

from ..lazy import tf


def set_up_tensorflow() -> None:
    """One core for each operation, and graphs that run as they are written.

    Left to itself TensorFlow spreads each small operation over all cores, and much of the time goes
    into handing the pieces out: runs side by side, each on a core, are up to twice as fast, and a
    run alone is no slower. Rewriting a graph before its first run takes longer than building it,
    and steps are hardly faster for it; and what is diagnosed is what the scenario wrote.

    The first has no effect where TensorFlow has begun to compute already.
    """
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
    except RuntimeError:  # too late
        return


def parts_at_once() -> int:
    """How many parts of a sweep this process should work on at a time."""
    if tf.config.threading.get_intra_op_parallelism_threads() != 1:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
