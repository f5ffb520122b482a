"""The offending element of an operation and the numbers that met there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .flow import ELEMENTWISE, ROWWISE
from .observe import Operation
from .values import Mask, array, at, is_numeric, largest


@dataclass(frozen=True)
class Operand:
    """One input at the offending element.

    `value` is the number that met there, or where an operation takes in many numbers at once the
    one of largest magnitude; `shape`, `dtype` and `largest` (finite magnitude) describe the whole.
    """

    value: float | complex
    shape: tuple[int, ...]
    dtype: str
    largest: float
    elementwise: bool


def first(mask: Mask) -> tuple[int, ...]:
    """The index of the first marked element."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def operands(seen: Operation, index: tuple[int, ...], shape: tuple[int, ...]) -> list[Operand]:
    """The floating-point inputs of an operation where its output of `shape` is at `index`; empty
    ones hold nothing that could meet there."""
    found = []
    for tensor in seen.inputs:
        if is_numeric(tensor) and tensor.shape.num_elements():
            values = array(tensor)
            own = at(values, index, shape) if seen.op in ELEMENTWISE else None
            value = _extreme(_taken(seen, values, index)) if own is None else own
            name = tensor.dtype.name
            found.append(Operand(value, values.shape, name, largest(tensor), own is not None))
    return found


def _taken(seen: Operation, values: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    """What of an input met at an element of the output: for a softmax its row."""
    return values[index[: values.ndim - 1]] if seen.op in ROWWISE and values.ndim > 1 else values


def _extreme(values: np.ndarray) -> Any:
    """A non-finite element if there is one, otherwise the largest in magnitude."""
    bad = ~np.isfinite(values)
    flat = values.ravel()
    place = int(np.argmax(bad)) if bad.any() else int(np.argmax(np.abs(flat)))
    return complex(flat[place]) if np.iscomplexobj(flat) else float(flat[place])
