"""Numbers of observed tensors: read once, judged once."""

from __future__ import annotations

from typing import Any

import numpy as np

Mask = np.ndarray


def is_numeric(tensor: Any) -> bool:
    """Whether a tensor holds numbers that can be Inf or NaN."""
    dtype = getattr(tensor, "dtype", None)
    return bool(getattr(dtype, "is_floating", False) or getattr(dtype, "is_complex", False))


def array(tensor: Any) -> np.ndarray:
    """The tensor's numbers; bfloat16 and float8 widened to float32, which loses nothing."""
    # An eager tensor's `numpy()` copies; these arrays are only read.
    values = np.asarray(tensor._numpy() if hasattr(tensor, "_numpy") else tensor.numpy())
    return values.astype(np.float32) if values.dtype.kind == "V" else values


class Values:
    """Arrays and non-finite places of tensors, each worked out once.

    Keeps every tensor it was asked about alive, so that identity stays a key.
    """

    def __init__(self) -> None:
        self._masks: dict[int, tuple[Any, Mask | None]] = {}

    def finite(self, tensor: Any) -> bool:
        """Whether no element is Inf or NaN (true of whole numbers, strings and resources)."""
        return self.bad(tensor) is None

    def bad(self, tensor: Any) -> Mask | None:
        """Where the tensor is Inf or NaN; None when nowhere."""
        known = self._masks.get(id(tensor))
        if known is not None:
            return known[1]
        mask: Mask | None = None
        if is_numeric(tensor):
            good = np.isfinite(array(tensor))
            mask = None if good.all() else ~good
        self._masks[id(tensor)] = (tensor, mask)
        return mask


def address(tensor: Any) -> int:
    """Where a tensor's numbers lie in memory: TensorFlow reads some variables unseen, and what it
    reads lies where the variable lies."""
    place: int = array(tensor).__array_interface__["data"][0]
    return place


def limits(tensor: Any) -> tuple[float, float, float]:
    """(largest, smallest normal, spacing at 1) of a tensor's dtype, any float or complex one."""
    import ml_dtypes  # noqa: PLC0415

    dtype = np.dtype(tensor.dtype.as_numpy_dtype)
    found: Any = ml_dtypes.finfo(dtype) if dtype.kind in "fV" else np.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(found.max), float(found.tiny), float(found.eps)


def largest(tensor: Any) -> float:
    """The largest finite magnitude (0 when there is none)."""
    if not is_numeric(tensor):
        return 0.0
    size = np.abs(array(tensor))
    if size.dtype == np.float16:
        size = size.astype(np.float32)
    good = np.isfinite(size)
    return float(size.max() if good.all() and size.size else np.max(size[good], initial=0.0))


def at(values: np.ndarray, index: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The element that broadcasting to `shape` puts at `index`, as a Python number; None when
    `values` does not broadcast to `shape`."""
    if values.ndim > len(shape):
        return None
    own = index[len(shape) - values.ndim :]
    pairs = zip(values.shape, shape[len(shape) - values.ndim :], strict=True)
    if any(size not in (1, whole) for size, whole in pairs):
        return None
    place = tuple(0 if size == 1 else i for i, size in zip(own, values.shape, strict=True))
    number = values[place]
    if np.iscomplexobj(number):
        return complex(number)
    return number.item() if hasattr(number, "item") else number


def unbroadcast(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """The places of a tensor of `shape` that broadcasting spread over `mask`."""
    extra = mask.ndim - len(shape)
    if extra > 0:
        mask = np.asarray(mask.any(axis=tuple(range(extra))))
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and mask.shape[i] != 1)
    return np.asarray(mask.any(axis=axes, keepdims=True)) if axes else mask


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` broadcasts to exactly `to`."""
    return len(shape) <= len(to) and all(
        a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False)
    )
