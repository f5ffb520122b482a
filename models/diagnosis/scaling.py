"""Overflow that only the loss scale caused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..lazy import tf
from .circumstances import Dependence
from .observe import Operation, Replay
from .values import array, is_numeric
from .walk import Walk

_SMALLEST = 8.0
_AFTER_THE_SCALE = ("Identity", "Cast", "Reshape", "Sum", "Mean", "AddV2", "AddN", "Mul", "Squeeze")


@dataclass(frozen=True)
class Scale:
    """The multiplication that scaled the loss, by `factor`; `dynamic` if the factor was read from a
    variable. Without it the gradient is finite."""

    operation: Operation
    factor: float
    dynamic: bool


def loss_scale(
    loss_fn: Callable[[], Any], step: Replay, walk: Walk, depends: Dependence
) -> Scale | None:
    """The power of two that the loss was multiplied by last, if the step is finite without it."""
    found = _scaled(step, walk.replay.observation.made, depends)
    if found is None:
        return None
    overflowed = not walk.values.finite(step.loss)
    if overflowed:
        unscaled = [t for t in found.operation.inputs if t is not None]
        return found if all(walk.values.finite(t) for t in unscaled) else None
    try:
        with tf.GradientTape() as tape:
            for variable in step.variables.values():
                tape.watch(variable)
            loss = loss_fn()
        seed = tf.ones_like(loss) / tf.cast(found.factor, loss.dtype)
        gradients = tape.gradient(loss, list(step.variables.values()), output_gradients=seed)
    finally:
        for variable, value in step.observation.before.values():
            variable.assign(value)
    flat = [g.values if isinstance(g, tf.IndexedSlices) else g for g in gradients if g is not None]
    return found if all(walk.values.finite(g) for g in flat) else None


def _scaled(step: Replay, made: dict[int, Operation], depends: Dependence) -> Scale | None:
    tensor = step.loss
    for _ in range(8):
        seen = made.get(id(tensor))
        if seen is None or seen.op not in _AFTER_THE_SCALE:
            return None
        if seen.op == "Mul":
            for factor in seen.inputs:
                number = _power_of_two(factor)
                if number is not None:
                    maker = made.get(id(factor))
                    read = maker is not None and _from_variable(maker, made)
                    if read or not depends(factor):
                        return Scale(seen, number, read)
        tensor = next((t for t in seen.inputs if is_numeric(t) and id(t) in made), None)
    return None


def _from_variable(seen: Operation, made: dict[int, Operation]) -> bool:
    while seen.op in ("Cast", "Identity") and id(seen.inputs[0]) in made:
        seen = made[id(seen.inputs[0])]
    return seen.op == "ReadVariableOp"


def _power_of_two(tensor: Any) -> float | None:
    if not is_numeric(tensor) or tensor.shape.rank:
        return None
    number = float(np.real(array(tensor)))
    whole = math.isfinite(number) and number >= _SMALLEST and math.log2(number).is_integer()
    return number if whole else None
