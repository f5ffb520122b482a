"""Divisors that count a mask or a class that is absent."""

from __future__ import annotations

from typing import Any

import numpy as np

from .circumstances import Dependence
from .flow import MOVES, REDUCTIONS, reduced_axes
from .masked import is_mask
from .observe import Operation
from .walk import Walk

_COUNTS_NAMES = """
    Sum Mean Size Prod Bincount DenseBincount UnsortedSegmentSum SegmentSum SegmentMean Max
    CountNonzero
"""
_COUNTS = frozenset(_COUNTS_NAMES.split())
_ON_THE_WAY_NAMES = """
    AddV2 BroadcastTo Cast ExpandDims GatherV2 Identity Maximum Mul Neg Pack Reshape Squeeze
    StridedSlice Sub Transpose
"""
_ON_THE_WAY = frozenset(_ON_THE_WAY_NAMES.split())


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
            if _is_empty(made, seen, depends):
                return True
            if seen.op in _ON_THE_WAY:
                following += list(seen.inputs)
        level = following
    return False


def _is_empty(made: dict[int, Operation], seen: Operation, depends: Dependence) -> bool:
    if seen.op in ("Shape", "Size"):
        return bool((np.asarray(seen.outputs[0].numpy()) == 0).any())
    if seen.op == "Cast":
        return _is_given_count(made, seen.inputs[0])
    if seen.op not in _COUNTS:
        return False
    none = _none_or_all(seen) and _counts_mask(made, seen, depends)
    return none or _masks_all(made, seen, depends)


def _is_given_count(made: dict[int, Operation], tensor: Any) -> bool:
    """Whether whole numbers that the program was given (lengths, sizes) hold a 0."""
    maker = made.get(id(tensor))
    while maker is not None and maker.op in MOVES and maker.inputs:
        tensor = maker.inputs[0]
        maker = made.get(id(tensor))
    return maker is None and tensor.dtype.is_integer and bool((tensor.numpy() == 0).any())


def _none_or_all(seen: Operation) -> bool:
    """Whether some count came to 0, or to everything there is, which leaves 0 for the rest: a
    count of 1 that 1 is taken from is not empty."""
    counts = np.asarray(seen.outputs[0].numpy(), float)
    size = np.asarray(seen.inputs[0].numpy()).size / max(counts.size, 1)
    return bool(np.isin(counts, (0.0, 1.0 if seen.op == "Mean" else size)).any())


def _counts_mask(made: dict[int, Operation], seen: Operation, depends: Dependence) -> bool:
    counted = seen.inputs[0]
    if depends(counted) or not is_mask(made, counted):
        return False
    values = np.asarray(counted.numpy())
    if values.dtype.kind in "SO":
        return True
    return bool(np.isin(values, (0, 1)).all()) or values.dtype.kind in "iub"


def _masks_all(made: dict[int, Operation], seen: Operation, depends: Dependence) -> bool:
    """Whether a mask leaves nothing of what is summed up: the sum of predictions times labels."""
    counted = seen.inputs[0]
    product = made.get(id(counted))
    if seen.op not in REDUCTIONS or product is None or product.op != "Mul":
        return False
    axes = reduced_axes(seen)
    for factor in product.inputs:
        if not depends(factor) and is_mask(made, factor):
            kept = np.broadcast_to(np.asarray(factor.numpy()) != 0, counted.shape)
            if not kept.any(axis=axes).all():
                return True
    return False
