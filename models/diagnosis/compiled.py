"""What XLA computes differently.

The gradient kernels of sqrt, rsqrt and the reciprocal return 0 for an incoming gradient of exactly
0; compiled by XLA they multiply 0 · Inf. So a step that is finite operation by operation can be
NaN once it is compiled, and the operation responsible is found by compiling each suspect alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..lazy import tf
from .observe import BACKWARD, Operation, Replay
from .values import Values, array
from .walk import Cause

_SUSPECTS = frozenset({"SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"})


def as_compiled(loss_fn: Callable[[], Any], replay: Replay) -> tuple[Any, list[Any]]:
    """Loss and gradients as the program itself computes them, unobserved and compiled; variables
    that it writes get their values back."""
    try:
        with tf.GradientTape() as tape:
            for variable in replay.variables.values():
                tape.watch(variable)
            loss = loss_fn()
        return loss, tape.gradient(loss, list(replay.variables.values()))
    finally:
        for variable, value in replay.observation.before.values():
            variable.assign(value)


def differing(replay: Replay, values: Values, targets: int) -> list[Cause]:
    """The backward operations that are finite by themselves and not once compiled."""
    causes = []
    for seen in replay.observation.operations:
        if seen.phase == BACKWARD and seen.op in _SUSPECTS and _suspicious(seen, values):
            output = _compiled(seen)
            bad = ~np.isfinite(array(output))
            if not bad.any():
                continue
            # 1/x and rsqrt are infinite themselves; only sqrt goes wrong on the way back alone.
            before = seen.forward
            made = None if before is None else values.bad(before.outputs[0])
            if before is not None and made is not None and (made & bad).any():
                causes.append(Cause(before, before.outputs[0], made & bad, targets, through=seen))
            else:
                causes.append(Cause(seen, output, bad, targets))
    return causes


def _suspicious(seen: Operation, values: Values) -> bool:
    """0 · (a derivative that is infinite), which the kernel by itself takes for 0."""
    y, dy = (array(t) for t in seen.inputs)
    edge = ~np.isfinite(y)
    if seen.op == "SqrtGrad":
        edge |= y == 0
    return bool((edge & (dy == 0)).any()) and values.finite(seen.outputs[0])


def _compiled(seen: Operation) -> Any:
    operation = getattr(tf.raw_ops, seen.op)
    alone = tf.function(lambda y, dy: operation(y=y, dy=dy), jit_compile=True, autograph=False)
    return alone(*seen.inputs)
