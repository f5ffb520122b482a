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

# Class of the buckets between the bounds of `_bit_bounds`, in their order.
_BUCKETS = ("zero", "subnormal", "", "neginf", "nan", "zero", "subnormal", "", "posinf", "nan")


def _layout(dtype: str) -> tuple[int, int]:
    """Total bits and mantissa bits of a floating-point dtype."""
    return {"float64": (64, 52), "float32": (32, 23), "float16": (16, 10), "bfloat16": (16, 7)}[
        dtype
    ]


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
    integer = {64: tf.int64, 32: tf.int32, 16: tf.int16}[_layout(dtype)[0]]
    bits = tf.bitcast(flat, integer)
    if integer == tf.int16:
        bits = tf.cast(bits, tf.int32)  # searchsorted has no 16-bit kernel
    bounds = tf.constant(_bit_bounds(dtype), bits.dtype)
    return tf.searchsorted(bounds, bits, side="right")


def measure(gradients: list[Any]) -> Any:
    """float64 tensor [parameters, len(FIELDS)] of dense gradients of one dtype.

    Counts of NaN, +Inf, −Inf, zero (both signs) and subnormal entries; the largest finite
    magnitude and the 2-norm of the finite entries, both 0 where there are none. The norm cannot
    overflow: it is taken relative to the largest magnitude.
    """
    sizes = [int(np.prod(g.shape)) for g in gradients]
    parameters = len(sizes)
    segments = tf.constant(np.repeat(np.arange(parameters, dtype=np.int32), sizes))
    flat = tf.concat([tf.reshape(g, [-1]) for g in gradients], axis=0)
    bucket = classify(flat) + segments * len(_BUCKETS)
    cells = parameters * len(_BUCKETS)
    counts = tf.math.bincount(bucket, minlength=cells, maxlength=cells)
    counts = tf.cast(tf.reshape(counts, [parameters, len(_BUCKETS)]), tf.float64)
    finite = tf.cast(
        tf.where(tf.math.is_finite(flat), tf.abs(flat), tf.zeros_like(flat)), tf.float64
    )
    largest = tf.math.segment_max(finite, segments)
    if flat.dtype == tf.float64:
        scale = tf.where(largest > 0, largest, tf.ones_like(largest))
        norm = scale * _root_of_squares(finite / tf.gather(scale, segments), segments)
    else:  # the square of any narrower number fits into float64
        norm = _root_of_squares(finite, segments)
    return tf.concat([counts @ _folding(), largest[:, None], norm[:, None]], axis=1)


def _root_of_squares(values: Any, segments: Any) -> Any:
    return tf.sqrt(tf.math.segment_sum(values * values, segments))


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
