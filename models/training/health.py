"""Gradient health: what can be told of each parameter's gradient in a few numbers.

Measured inside the compiled graph, for all parameters in one pass over their concatenated entries.
Entries are classified by their bits: CPU kernels flush subnormal numbers to zero, so that
arithmetic and comparison cannot see them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lazy import tf

COUNTS = ("nan", "posinf", "neginf", "zero", "subnormal")
FIELDS = (*COUNTS, "max_abs", "norm")
NONFINITE = 3  # so many of the fields, the first ones, count non-finite entries

TOGETHER = 4096  # entries that are measured in one go

# Class of the buckets between the bounds of `_bit_bounds`, in their order.
_BUCKETS = ("zero", "subnormal", "", "neginf", "nan", "zero", "subnormal", "", "posinf", "nan")


def _layout(dtype: str) -> tuple[int, int]:
    """Total bits and mantissa bits of a floating-point dtype."""
    return {"float64": (64, 52), "float32": (32, 23), "float16": (16, 10), "bfloat16": (16, 7)}[
        dtype
    ]


def _integer(dtype: str) -> Any:
    return {64: tf.int64, 32: tf.int32, 16: tf.int16}[_layout(dtype)[0]]


def _bit_bounds(dtype: str) -> list[int]:
    """Lower bounds of the classes when the bits are read as a signed integer.

    Negative numbers come first and, read that way, grow away from −0.
    """
    bits, mantissa = _layout(dtype)
    lowest, smallest_normal = -(2 ** (bits - 1)), 2**mantissa
    infinity = (2 ** (bits - mantissa - 1) - 1) << mantissa
    return [
        lowest + 1,  # above it: negative subnormal (−0 alone lies below)
        lowest + smallest_normal,
        lowest + infinity,
        lowest + infinity + 1,
        0,
        1,
        smallest_normal,
        infinity,
        infinity + 1,
    ]


def classify(flat: Any) -> Any:
    """int32 tensor of the shape of `flat`: index into `_BUCKETS` of each entry."""
    dtype = flat.dtype.name
    bits = tf.bitcast(flat, _integer(dtype))
    if bits.dtype == tf.int16:
        bits = tf.cast(bits, tf.int32)  # searchsorted has no 16-bit kernel
    bounds = tf.constant(_bit_bounds(dtype), bits.dtype)
    return tf.searchsorted(bounds, bits, side="right")


def measure(gradients: list[Any]) -> Any:
    """float64 tensor [parameters, len(FIELDS)] of dense gradients of one dtype.

    Counts of NaN, +Inf, −Inf, zero (both signs) and subnormal entries; the largest finite
    magnitude and the 2-norm of the finite entries, both 0 where there are none. The norm cannot
    overflow: it is taken in float64, relative to the largest magnitude where need be.

    Nearly every step is finite, so that is looked at first and in few passes; all classes are told
    apart only where a gradient is not.
    """
    groups = [_Entries(group) for group in _groups(gradients)]
    figures, is_finite = (
        tf.concat(parts, axis=0)
        for parts in zip(*(_measure_finite(group) for group in groups), strict=True)
    )
    return tf.cond(
        tf.reduce_all(is_finite),
        lambda: figures,
        lambda: tf.concat([_measure_any(group) for group in groups], axis=0),
    )


def _groups(gradients: list[Any]) -> list[list[Any]]:
    """Neighbours that are measured together: small ones, because starting an operation costs more
    than their entries; a large one alone, because to copy it costs more."""
    groups: list[list[Any]] = []
    room = 0
    for gradient in gradients:
        size = _size(gradient)
        if size > room:
            groups.append([])
            room = TOGETHER
        groups[-1].append(gradient)
        room -= size
    return groups


def _measure_finite(entries: _Entries) -> tuple[Any, Any]:
    """What `measure` gives for gradients without non-finite entries, and whether they are such
    (bool [parameters]). Only the bits of the magnitudes are compared, see `classify`."""
    dtype = entries.flat.dtype
    width, mantissa = _layout(dtype.name)
    bits = tf.bitcast(entries.flat, _integer(dtype.name))
    magnitude = tf.bitwise.bitwise_and(bits, 2 ** (width - 1) - 1)
    if width == 16:
        magnitude = tf.cast(magnitude, tf.int32)
    one = tf.ones([], magnitude.dtype)
    top = entries.largest(magnitude)
    not_zero = entries.total(tf.minimum(magnitude, one))
    normal = entries.total(tf.minimum(tf.bitwise.right_shift(magnitude, one * mantissa), one))
    zero, subnormal = tf.constant(entries.sizes, one.dtype) - not_zero, not_zero - normal
    none = tf.zeros_like(zero)
    counts = tf.cast(tf.stack([none, none, none, zero, subnormal], axis=1), tf.float64)
    max_abs = tf.cast(tf.bitcast(tf.cast(top, bits.dtype), dtype), tf.float64)
    magnitudes = tf.stack([max_abs, _norm(entries.flat, max_abs, entries)], axis=1)
    infinity = (2 ** (width - mantissa - 1) - 1) << mantissa
    return tf.concat([counts, magnitudes], axis=1), top < infinity


def norms(tensors: list[Any]) -> Any:
    """float64 [tensors]: 2-norms in the tensors' own precision (infinite where a square is)."""
    halves = tf.stack([tf.nn.l2_loss(tensor) for tensor in tensors])
    return tf.sqrt(2 * tf.cast(halves, tf.float64))


class _Entries:
    """The entries of several tensors in one row, with sums and maxima per tensor."""

    def __init__(self, tensors: list[Any]) -> None:
        self.sizes = [_size(tensor) for tensor in tensors]
        self.flat = tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)
        self._alone = len(tensors) == 1
        self.segments = np.repeat(np.arange(len(tensors), dtype=np.int32), self.sizes)

    def total(self, row: Any) -> Any:
        if self._alone:
            return tf.reduce_sum(row, keepdims=True)
        return tf.math.segment_sum(row, self.segments)

    def total_of_squares(self, row: Any) -> Any:
        if self._alone:
            return 2 * tf.nn.l2_loss(row)[None]
        return tf.math.segment_sum(row * row, self.segments)

    def largest(self, row: Any) -> Any:
        if self._alone:
            return tf.reduce_max(row, keepdims=True)
        return tf.math.segment_max(row, self.segments)

    def spread(self, values: Any) -> Any:
        """Each tensor's value at each of its entries."""
        return values if self._alone else tf.gather(values, self.segments)


def _norm(finite: Any, max_abs: Any, entries: _Entries) -> Any:
    wide = tf.cast(finite, tf.float64)
    if finite.dtype != tf.float64:  # the square of any narrower number fits into float64
        return tf.sqrt(entries.total_of_squares(wide))
    scale = tf.where(max_abs > 0, max_abs, tf.ones_like(max_abs))
    return scale * tf.sqrt(entries.total_of_squares(wide / entries.spread(scale)))


def _size(gradient: Any) -> int:
    return int(np.prod(gradient.shape))


def _measure_any(entries: _Entries) -> Any:
    """What `measure` gives, whatever the entries are."""
    parameters = len(entries.sizes)
    bucket = classify(entries.flat) + entries.segments * len(_BUCKETS)
    cells = parameters * len(_BUCKETS)
    counts = tf.math.bincount(bucket, minlength=cells, maxlength=cells)
    counts = tf.cast(tf.reshape(counts, [parameters, len(_BUCKETS)]), tf.float64)
    is_finite = tf.math.is_finite(entries.flat)
    finite = tf.where(is_finite, entries.flat, tf.zeros_like(entries.flat))
    max_abs = tf.cast(entries.largest(tf.abs(finite)), tf.float64)
    magnitudes = tf.stack([max_abs, _norm(finite, max_abs, entries)], axis=1)
    return tf.concat([counts @ _folding(), magnitudes], axis=1)


def _folding() -> Any:
    """[buckets, COUNTS] matrix that adds the buckets of one class."""
    return tf.constant(
        [[float(name == count) for count in COUNTS] for name in _BUCKETS], tf.float64
    )


def nonfinite(health: Any) -> Any:
    """Number of non-finite entries per parameter; `health` is [..., FIELDS], tensor or array."""
    return health[..., 0] + health[..., 1] + health[..., 2]


def as_dict(row: np.ndarray[Any, Any], size: int) -> dict[str, int | float]:
    """One parameter's health by name, with its number of entries."""
    named: dict[str, int | float] = {"size": size}
    for name, value in zip(FIELDS, row, strict=True):
        named[name] = int(value) if name in COUNTS else float(value)
    return named
