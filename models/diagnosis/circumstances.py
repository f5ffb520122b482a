"""What let a cause through: whether its value was used at all, and what its divisor counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .flow import MOVES
from .observe import FORWARD, Operation
from .values import Mask, address, array, at, is_numeric
from .walk import Cause, Walk

MASKED, LOST_EPSILON = "masked-branch", "lost-epsilon"
EMPTY, LOSS_SCALE, STEP = "empty-count", "loss-scale", "step-too-large"

_SAME_PLACE = frozenset(
    ["AddN", "AddV2", "Add", "Sub", "Neg", "Cast", "Identity", "Mul", "RealDiv", "Conj", "StopGradient"]
)
_RESHAPED = frozenset(
    ["Reshape", "Sum", "Mean", "Tile", "BroadcastTo", "Transpose", "ExpandDims", "Squeeze", "Pack", "Unpack", "ConcatV2", "Slice"]
)
_SELECTS = frozenset({"Select", "SelectV2"})
_UNUSED = frozenset(
    ["StridedSliceGrad", "UnsortedSegmentSum", "ScatterNd", "Pad", "PadV2", "TensorScatterUpdate", "ResourceScatterAdd"]
)
_ACTIVATION_GRADIENTS = frozenset(
    ["EluGrad", "LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SigmoidGrad", "SoftplusGrad", "SqrtGrad", "RsqrtGrad", "TanhGrad"]
)
_CHAIN_RULE = _ACTIVATION_GRADIENTS | {"RealDiv", "Reciprocal", "ReciprocalGrad", "InvGrad"}
_COUNTS = frozenset(
    ["Sum", "Mean", "Size", "Prod", "Bincount", "DenseBincount", "UnsortedSegmentSum", "SegmentSum", "SegmentMean", "Max", "CountNonzero"]
)
_ON_THE_WAY_TO_A_COUNT = (
    "Cast", "Identity", "Reshape", "Squeeze", "ExpandDims", "StridedSlice", "GatherV2", "Maximum",
    "Mul", "AddV2", "Sub", "Pack", "BroadcastTo", "Transpose", "Neg",
)  # fmt: skip


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


def masked_branch(walk: Walk, cause: Cause, depends: Dependence, limit: int = 60) -> bool:
    """Whether the value was not used (an untaken select, a zero mask, an element left out) and
    became NaN on the way back by meeting that zero."""
    made = walk.replay.observation.made
    for target in [b for b in range(len(walk.names)) if cause.targets >> b & 1][:3]:
        for seen in walk.path(cause, target)[:limit]:
            own = cause.given is None and (seen is cause.operation or seen is cause.through)
            bad = cause.mask if own else walk.values.bad(seen.outputs[0])
            zeros = _zeros(made, seen, bad)
            if any(_from_mask(made, depends, t, index) for t, index in zeros):
                return True
    return False


def _zeros(
    made: dict[int, Operation], seen: Operation, bad: Mask | None
) -> list[tuple[Any, tuple[int, ...]]]:
    """Inputs that are exactly 0 where the output is bad by 0 · Inf or 0 · NaN: on the way back only
    the incoming gradient, for a local derivative of 0 hides nothing."""
    backward = seen.phase != FORWARD
    if bad is None or not (seen.op == "Mul" or (backward and seen.op in _CHAIN_RULE)):
        return []
    found = []
    for tensor in seen.inputs:
        if not is_numeric(tensor) or (backward and not _carries(made, seen, tensor)):
            continue
        zero = np.broadcast_to(array(tensor) == 0, bad.shape) & bad
        if zero.any():
            index = tuple(int(i) for i in np.unravel_index(int(zero.argmax()), zero.shape))
            found.append((tensor, index))
    return found


def _carries(made: dict[int, Operation], seen: Operation, tensor: Any, depth: int = 6) -> bool:
    """Whether an operand holds the incoming gradient and not just a local derivative."""
    maker = made.get(id(tensor))
    if maker is None or maker.phase == FORWARD:
        return False
    if maker.forward is not seen.forward or maker.op == "AddN":
        return True
    return depth > 0 and any(_carries(made, seen, t, depth - 1) for t in maker.inputs)


def _from_mask(
    made: dict[int, Operation],
    depends: Dependence,
    tensor: Any,
    index: tuple[int, ...] | None,
    depth: int = 40,
) -> bool:
    """Whether a zero was put there by a select or a mask, and not by the arithmetic of the model."""
    seen = made.get(id(tensor))
    if seen is None or seen.phase == FORWARD:
        return not depends(tensor) and _is_mask(made, tensor)
    if depth == 0:
        return False
    if seen.op in _UNUSED:
        return True
    follow: Sequence[Any] = ()
    if seen.op in _SELECTS:
        if seen.forward is None or seen.forward.op not in _SELECTS:
            return False
        picked = _picked(seen, index)
        if any(id(t) not in made or made[id(t)].op in ("Fill", "ZerosLike") for t in picked):
            return True
        follow = picked
    elif seen.op in _SAME_PLACE or seen.op in _ACTIVATION_GRADIENTS:
        follow = [t for t in seen.inputs if is_numeric(t) and _is_zero(t, index, seen.outputs[0])]
        if seen.forward is None or seen.forward.op not in ("Mul", "RealDiv", "MatMul"):
            # Only a factor that the program multiplied by can be a mask.
            follow = [t for t in follow if _carries(made, seen, t)]
    elif seen.op in _RESHAPED:
        follow = [t for t in seen.inputs[:1] if is_numeric(t)]
        if follow and follow[0].shape != seen.outputs[0].shape:
            index = None
    return any(_from_mask(made, depends, t, index, depth - 1) for t in follow)


def _is_mask(made: dict[int, Operation], tensor: Any, depth: int = 12) -> bool:
    """Whether a constant was given or made as a mask or a label, not worked out from numbers."""
    seen = made.get(id(tensor))
    if seen is None:
        return True
    if depth == 0 or not seen.inputs:
        return False
    if seen.op in ("OneHot", "Sign", "Floor", "Fill", "ZerosLike"):
        return True
    if seen.op == "Cast":
        return not is_numeric(seen.inputs[0]) or _is_mask(made, seen.inputs[0], depth - 1)
    if seen.op in MOVES or seen.op in ("Identity", "RealDiv", "Neg", "StopGradient"):
        return _is_mask(made, seen.inputs[0], depth - 1)
    if seen.op == "Mul":
        return any(_is_mask(made, t, depth - 1) and _is_zero(t, None, t) for t in seen.inputs)
    if seen.op in ("Sub", "AddV2", "Maximum", "Minimum"):
        return all(_is_mask(made, t, depth - 1) for t in seen.inputs)
    return False


def _picked(seen: Operation, index: tuple[int, ...] | None) -> list[Any]:
    """The side that a select took at an element; both that it took somewhere when the element is
    not known."""
    condition, yes, no = seen.inputs
    chosen = np.asarray(condition.numpy())
    if index is not None:
        taken = at(chosen, index, tuple(seen.outputs[0].shape))
        return [yes if taken else no]
    return [side for side, taken in ((yes, chosen.any()), (no, not chosen.all())) if taken]


def _is_zero(tensor: Any, index: tuple[int, ...] | None, output: Any) -> bool:
    values = array(tensor)
    if index is not None:
        value = at(values, index, tuple(output.shape))
        if value is not None:
            return bool(value == 0)
    return bool((values == 0).any())


def empty_count(walk: Walk, divisor: Any, depends: Dependence) -> bool:
    """Whether a zero divisor is the count of a mask or of a class that is absent."""
    made = walk.replay.observation.made
    level, known = [divisor], set()
    for _ in range(8):
        following: list[Any] = []
        for tensor in level:
            seen = made.get(id(tensor))
            if seen is None or seen.index in known:
                continue
            known.add(seen.index)
            if seen.op in ("Shape", "Size"):
                return True
            if seen.op in _COUNTS and _counts_nothing(made, seen, depends):
                return True
            if seen.op in _ON_THE_WAY_TO_A_COUNT:
                following += list(seen.inputs)
        level = following
    return False


def _counts_nothing(made: dict[int, Operation], seen: Operation, depends: Dependence) -> bool:
    counted = seen.inputs[0]
    maker = made.get(id(counted))
    if depends(counted) or (
        maker is not None and maker.op in ("Square", "SquaredDifference", "Exp")
    ):
        return False
    values = np.asarray(counted.numpy())
    if values.dtype.kind in "SO":
        return True
    return bool(np.isin(values, (0, 1)).all()) or values.dtype.kind in "iub"
