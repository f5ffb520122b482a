"""Divisors that count a mask or a class that is absent."""

from __future__ import annotations

from typing import Any

import numpy as np

from .circumstances import Dependence
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
            if seen.op in ("Shape", "Size"):
                return True
            if seen.op in _COUNTS and _counts_nothing(made, seen, depends):
                return True
            if seen.op in _ON_THE_WAY:
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
