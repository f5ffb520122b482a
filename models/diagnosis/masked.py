"""Values that were not used, and became NaN on the way back by meeting the zero that hid them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .circumstances import Dependence
from .flow import CONTRACTIONS, MOVES, contracted
from .observe import FORWARD, TRANSFORM, Operation
from .operands import first
from .values import Mask, array, at, is_numeric
from .walk import Cause, Walk

_SAME_PLACE_NAMES = """
    Add AddN AddV2 Cast Conj Identity Mul Neg RealDiv StopGradient Sub
"""
_SAME_PLACE = frozenset(_SAME_PLACE_NAMES.split())
_RESHAPED_NAMES = """
    Reshape Sum Mean Tile BroadcastTo Transpose ExpandDims Squeeze Pack Unpack ConcatV2
    Slice
"""
_RESHAPED = frozenset(_RESHAPED_NAMES.split())
_SELECTS = frozenset({"Select", "SelectV2"})
_UNUSED_NAMES = """
    StridedSliceGrad UnsortedSegmentSum ScatterNd Pad PadV2 TensorScatterUpdate
    ResourceScatterAdd
"""
_UNUSED = frozenset(_UNUSED_NAMES.split())
_MASK_STAYS_MASK = frozenset({"Abs", "Cast", "Identity", "Neg", "RealDiv", "StopGradient"})
_MASKS = frozenset({"OneHot", "Sign", "Floor", "Fill", "ZerosLike"})
_ACTIVATION_GRADIENTS_NAMES = """
    EluGrad LeakyReluGrad Relu6Grad ReluGrad SeluGrad SigmoidGrad SoftplusGrad SqrtGrad
    RsqrtGrad TanhGrad
"""
_ACTIVATION_GRADIENTS = frozenset(_ACTIVATION_GRADIENTS_NAMES.split())
_CHAIN_RULE = _ACTIVATION_GRADIENTS | {"RealDiv", "Reciprocal", "ReciprocalGrad", "InvGrad"}


def masked_branch(walk: Walk, cause: Cause, depends: Dependence, limit: int = 60) -> bool:
    """Whether the value does not show in the loss (an untaken select, a zero mask, an element left
    out, saturation) and became NaN on the way back by meeting the zero that hid it."""
    made = walk.replay.observation.made
    hidden = cause.operation.phase == FORWARD and "loss" not in walk.reached(cause)
    reached = [b for b in range(len(walk.names)) if cause.targets >> b & 1]
    for target in dict.fromkeys([*reached[:3], *reached[-1:]]):  # the loss comes after variables
        for seen in walk.path(cause, target)[:limit]:
            own = cause.given is None and seen in (cause.operation, cause.through)
            bad = cause.mask if own else walk.values.bad(seen.outputs[0])
            zeros = _zeros(made, seen, bad)
            if zeros and hidden and seen.phase != FORWARD:
                return True
            if any(_from_mask(made, depends, t, index) for t, index in zeros):
                return True
    return False


def _zeros(
    made: dict[int, Operation], seen: Operation, bad: Mask | None
) -> list[tuple[Any, tuple[int, ...]]]:
    """Inputs that are exactly 0 where the output is bad by 0 · Inf or 0 · NaN: on the way back only
    the incoming gradient, for a local derivative of 0 hides nothing."""
    backward = seen.phase != FORWARD
    if seen.stage == TRANSFORM:  # a gradient of 0 that is clipped is no mask
        return []
    if bad is not None and not backward and seen.op in CONTRACTIONS:
        return _zero_factors_summed(seen, bad)
    if bad is None or not (seen.op == "Mul" or (backward and seen.op in _CHAIN_RULE)):
        return []
    found = []
    for tensor in seen.inputs:
        if not is_numeric(tensor) or (backward and not _carries(made, seen, tensor)):
            continue
        zero = np.broadcast_to(array(tensor) == 0, bad.shape) & bad
        # A NaN that this factor lets through elsewhere is used there.
        lets = np.isfinite(array(tensor)) & ~zero & np.isnan(array(seen.outputs[0]))
        used = not backward and bool(lets.any())
        if zero.any() and not used:
            index = tuple(int(i) for i in np.unravel_index(int(zero.argmax()), zero.shape))
            found.append((tensor, index))
    return found


def _zero_factors_summed(seen: Operation, bad: Mask) -> list[tuple[Any, tuple[int, ...]]]:
    """The same for products that are summed up on the spot: a matrix product with labels."""
    values = [array(t) for t in seen.inputs]
    if len(values) != 2:
        return []
    found = []
    for i, tensor in enumerate(seen.inputs):
        zero, live = (values[i] == 0), np.isfinite(values[i]) & (values[i] != 0)
        hidden, used = (
            contracted(seen, *(one if i == k else ~np.isfinite(values[k]) for k in (0, 1))) > 0
            for one in (zero, live)
        )
        if (hidden & bad).any() and not (used & bad).any():
            found.append((tensor, first(zero)))
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
    """Whether a zero was put there by a select or a mask, not by the arithmetic of the model."""
    seen = made.get(id(tensor))
    if seen is None or seen.phase == FORWARD:
        return not depends(tensor) and is_mask(made, tensor)
    if depth == 0 or seen.op in _UNUSED:
        return depth > 0
    if seen.op in _SELECTS:
        follow = _picked(seen, index) if _differentiates_select(seen) else []
        if any(id(t) not in made or made[id(t)].op in ("Fill", "ZerosLike") for t in follow):
            return True
    elif seen.op in _RESHAPED:
        follow = [t for t in seen.inputs[:1] if is_numeric(t)]
        if follow and follow[0].shape != seen.outputs[0].shape:
            index = None
    else:
        follow = _zero_factors(made, seen, index)
    return any(_from_mask(made, depends, t, index, depth - 1) for t in follow)


def _differentiates_select(seen: Operation) -> bool:
    return seen.forward is not None and seen.forward.op in _SELECTS


def _zero_factors(
    made: dict[int, Operation], seen: Operation, index: tuple[int, ...] | None
) -> list[Any]:
    """The inputs of an elementwise operation that made its output 0."""
    if seen.op not in _SAME_PLACE and seen.op not in _ACTIVATION_GRADIENTS:
        return []
    zeros = [t for t in seen.inputs if is_numeric(t) and _is_zero(t, index, seen.outputs[0])]
    if seen.forward is not None and seen.forward.op in ("Mul", "RealDiv", "MatMul"):
        return zeros
    # Only a factor that the program multiplied by can be a mask.
    return [t for t in zeros if _carries(made, seen, t)]


def is_mask(made: dict[int, Operation], tensor: Any, depth: int = 12) -> bool:
    """Whether a constant was given or made as a mask or a label, not worked out from numbers."""
    seen = made.get(id(tensor))
    if seen is None:
        return True
    if depth == 0 or not seen.inputs or seen.op in _MASKS:
        return seen.op in _MASKS
    first = seen.inputs[0]
    if seen.op == "Cast" and not is_numeric(first):
        return True
    if seen.op in MOVES or seen.op in _MASK_STAYS_MASK:
        return is_mask(made, first, depth - 1)
    if seen.op == "Mul":
        return first is not seen.inputs[1] and any(
            is_mask(made, t, depth - 1) and _is_zero(t, None, t) for t in seen.inputs
        )
    sides = seen.inputs[1:] if seen.op in _SELECTS else seen.inputs
    return (seen.op in _SELECTS or seen.op in ("Sub", "AddV2", "Maximum", "Minimum")) and all(
        is_mask(made, t, depth - 1) for t in sides
    )


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
