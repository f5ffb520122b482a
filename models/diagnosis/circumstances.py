"""What let a cause through: the words, and what depends on a variable at all."""

from __future__ import annotations

from typing import Any

from .observe import FORWARD
from .values import address, is_numeric
from .walk import Walk

MASKED, LOST_EPSILON = "masked-branch", "lost-epsilon"
EMPTY, LOSS_SCALE, STEP = "empty-count", "loss-scale", "step-too-large"


class Dependence:
    """Which tensors of the forward pass change, differentiably, with a variable."""

    def __init__(self, walk: Walk) -> None:
        self._moving: set[int] = set()
        made, variables = walk.replay.observation.made, walk.variable_at
        for seen in walk.replay.observation.operations:
            if seen.stage != FORWARD:
                break
            reads = bool(seen.inputs) and getattr(seen.inputs[0], "dtype", None) == "resource"
            for t in seen.inputs:
                unseen = id(t) not in made and is_numeric(t) and address(t) in variables
                if unseen:
                    self._moving.add(id(t))
            if reads or any(id(t) in self._moving and is_numeric(t) for t in seen.inputs):
                self._moving.update(id(t) for t in seen.outputs if is_numeric(t))
        self._moving.update(id(v) for v in walk.replay.variables.values())

    def __call__(self, tensor: Any) -> bool:
        return id(tensor) in self._moving
