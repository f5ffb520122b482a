"""One cause judged: what happened there, and what let it through."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from . import mechanisms as m
from .circumstances import EMPTY, LOST_EPSILON, MASKED, Dependence
from .counts import empty_count
from .guards import lost_epsilon, overflowed_constant
from .masked import masked_branch
from .observe import BACKWARD, Operation
from .operands import first, operands
from .values import array, is_numeric, largest, limits
from .walk import Cause, Walk, ancestors

_SINGULAR = frozenset(
    {
        m.LOG_ZERO, m.LOG_NEGATIVE, m.DIVIDE, m.ZERO_OVER_ZERO, m.POWER_ZERO, m.ROOT_ZERO, m.EDGE,
        m.DOMAIN, m.ANGLE, m.POLE, m.ROOT_NEGATIVE, m.DEFINITE,
    }
)  # fmt: skip


class Judge:
    """Knows the walk that the causes come from."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk

    @cached_property
    def depends(self) -> Dependence:
        """Which forward tensors change with a variable."""
        return Dependence(self.walk)

    def mechanism(self, cause: Cause, numbers: list[Any] | None = None) -> str:
        """What happened, from the operation and the `numbers` it was given at the first offending
        element (worked out when not given)."""
        if cause.given is not None:
            written = cause.given == m.INPUT and overflowed_constant(cause.operation, cause.tensor)
            return m.CAST if written else cause.given
        if numbers is None:
            found = operands(cause.operation, first(cause.mask), cause.mask.shape)
            numbers = [o.value for o in found]
        seen = cause.operation
        tiny = limits(cause.tensor)[1]
        if _of_nothing(seen):
            return m.ZERO_OVER_ZERO
        if seen.op == "Log" and self._is_logsumexp(seen):
            return m.SOFTMAX
        if seen.op.startswith("FusedBatchNorm"):
            return self._normalisation(seen)
        forward = seen.forward.op if seen.forward is not None else None
        if seen.phase == BACKWARD:
            return m.backward_mechanism(seen.op, numbers, tiny, forward) or m.PRODUCT
        return m.own_mechanism(seen.op, numbers, tiny) or m.PRODUCT

    def _normalisation(self, seen: Operation) -> str:
        """Fused batch normalisation: its variance of one element, its root of variance + ε at 0, or
        numbers too large to square."""
        if max(largest(t) for t in seen.inputs) > limits(seen.inputs[0])[0] ** 0.5:
            return m.PRODUCT
        variance = seen.outputs[2] if len(seen.outputs) > 2 else seen.outputs[0]
        return m.ROOT_ZERO if self.walk.values.finite(variance) else m.ZERO_OVER_ZERO

    def _is_logsumexp(self, seen: Operation) -> bool:
        """log of a sum of exponentials that are all exp(−Inf)."""
        made = self.walk.replay.observation.made
        steps = list(ancestors(seen.inputs[0], made, ("Sum", "Reshape", "Identity", "Squeeze"), 4))
        exponential = next((s for s in steps if s.op == "Exp"), None)
        if exponential is None or not any(s.op == "Sum" for s in steps):
            return False
        return bool(np.isneginf(array(exponential.inputs[0])).any())

    def circumstances(self, cause: Cause, mechanism: str) -> tuple[str, ...]:
        """What let the cause through, as far as its path shows it."""
        found, index = [], first(cause.mask)
        if mechanism not in (m.EXPLOSION, m.CLIP, m.SOFTMAX) and masked_branch(
            self.walk, cause, self.depends
        ):
            found.append(MASKED)
        # A singularity on the way back lies where the forward operation was evaluated.
        forward = cause.operation.forward or cause.operation
        shape = cause.mask.shape
        inputs = [t for t in forward.inputs if is_numeric(t)]
        if mechanism in _SINGULAR and lost_epsilon(self.walk, inputs, index, shape, self.depends):
            found.append(LOST_EPSILON)
        if mechanism in (m.DIVIDE, m.ZERO_OVER_ZERO) and not forward.op.endswith("Grad"):
            divisor = forward.inputs[-1]
            if _of_nothing(forward) or empty_count(self.walk, divisor, self.depends):
                found.append(EMPTY)
        return tuple(found)


def _of_nothing(seen: Operation) -> bool:
    """A mean, a largest or a smallest of no elements at all."""
    return seen.op in m.OF_NOTHING and not array(seen.inputs[0]).size
