"""Operations that turn deliberate infinities into NaN: they are the cause, not what fed them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import mechanisms as m
from .flow import ROWWISE
from .observe import TRANSFORM, Operation
from .values import Mask, array, is_numeric

Trapped = list[tuple[int, Mask, str]]


def traps(seen: Operation, marked: dict[int, Mask], made: dict[int, Operation]) -> Trapped:
    """The `marked` elements of an operation that fell into a trap here, as (output number, mask,
    mechanism)."""
    if seen.op in ROWWISE and is_numeric(seen.inputs[0]):
        return _masked_rows(seen, marked)
    if seen.op == "Sub" and len(seen.inputs) == 2 and seen.inputs[0].dtype.is_floating:
        return _difference(seen, marked[0], made)
    return []


def _masked_rows(seen: Operation, marked: dict[int, Mask]) -> Trapped:
    """Rows of −Inf only; and for a cross-entropy labels whose logit is −Inf, which is log 0."""
    logits = array(seen.inputs[0])
    rows = np.asarray(np.isneginf(logits).all(axis=-1))
    some = np.isneginf(logits).any(axis=-1) & ~(np.isnan(logits) | np.isposinf(logits)).any(-1)
    kinds = [(rows, m.SOFTMAX)]
    if seen.op.endswith("WithLogits"):
        kinds.append((np.asarray(some & ~rows), m.LOG_ZERO))
    found: Trapped = []
    for k, mask in marked.items():
        for kind, mechanism in kinds:
            trapped = mask & (kind[..., None] if mask.ndim > kind.ndim else kind)
            if trapped.any():
                found.append((k, trapped, mechanism))
    return found


def _difference(seen: Operation, mask: Mask, made: dict[int, Operation]) -> Trapped:
    left, right = (array(t) for t in seen.inputs)
    if seen.stage == TRANSFORM and np.all(np.isinf(left) & np.isinf(right)):
        return [(0, mask, m.CLIP)]
    row = np.broadcast_to(np.isneginf(left) & np.isneginf(right), mask.shape) & mask
    # A softmax by hand: x − max(x) of a row of −Inf.
    return [(0, row, m.SOFTMAX)] if row.any() and _is_maximum(seen.inputs[1], made) else []


def _is_maximum(tensor: Any, made: dict[int, Operation]) -> bool:
    maker = made.get(id(tensor))
    for _ in range(4):
        if maker is None or maker.op in ("Max", "Maximum"):
            return maker is not None
        maker = made.get(id(maker.inputs[0])) if maker.inputs else None
    return False
