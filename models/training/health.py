"""Gradient health: what can be told of each parameter's gradient in a few numbers.

Measured inside the compiled graph. Entries are classified by their bits: CPU kernels flush
subnormal numbers to zero, so that arithmetic and comparison cannot see them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lazy import tf

COUNTS = ("nan", "posinf", "neginf", "zero", "subnormal")
FIELDS = (*COUNTS, "max_abs", "norm")
MAGNITUDES = slice(len(COUNTS), len(FIELDS))
MAX_ABS = FIELDS.index("max_abs")


def measure(gradients: list[Any]) -> Any:
    """float64 tensor [parameters, FIELDS] of dense gradients of one dtype, see `measure_rows`."""
    return measure_rows([tf.reshape(gradient, [1, -1]) for gradient in gradients])[0]


def measure_rows(rows: list[Any]) -> Any:
    """float64 tensor [steps, parameters, FIELDS] of one tensor [steps, entries] per parameter.

    Counts of NaN, +Inf, −Inf, zero (both signs) and subnormal entries; the largest finite
    magnitude and the 2-norm of the finite entries, both 0 where there are none. The norm cannot
    overflow: it is taken in float64, relative to the largest magnitude where need be.

    Nearly every step is finite, so that is looked at first and in few passes; all classes are told
    apart only where something is not.
    """
    bits = [_Bits(row) for row in rows]
    largest = tf.stack([b.largest() for b in bits], axis=1)
    return tf.cond(
        tf.reduce_all(largest < bits[0].infinity),
        lambda: _measure_finite(rows, bits, largest),
        lambda: tf.stack([_measure_any(*both) for both in zip(rows, bits, strict=True)], axis=1),
    )


class _Bits:
    """The bits of floating-point values as integers, without their sign."""

    def __init__(self, values: Any) -> None:
        self.dtype = values.dtype
        total = 8 * self.dtype.size
        mantissa = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}[self.dtype.name]
        self._integer = {64: tf.int64, 32: tf.int32, 16: tf.int16}[total]
        self._mantissa = mantissa
        self.infinity = (2 ** (total - mantissa - 1) - 1) << mantissa
        magnitude = tf.bitcast(values, self._integer) & (2 ** (total - 1) - 1)
        self.magnitude = tf.cast(magnitude, tf.int32) if total == 16 else magnitude
        self.size = int(values.shape[1])

    def largest(self) -> Any:
        """[steps]: of the magnitudes, as an integer; `infinity` or more if not finite."""
        return tf.reduce_max(self.magnitude, axis=1)

    def not_zero(self) -> Any:
        """[steps]: number of entries."""
        return _count(self.magnitude > 0)

    def normal(self) -> Any:
        """[steps]: number of entries with an exponent above the smallest."""
        smallest = tf.constant(1 << self._mantissa, self.magnitude.dtype)
        return _count(self.magnitude >= smallest)

    def as_float(self, magnitude: Any) -> Any:
        """float64 of a magnitude's bits."""
        return tf.cast(tf.bitcast(tf.cast(magnitude, self._integer), self.dtype), tf.float64)


def _count(marked: Any) -> Any:
    """float64 [steps]. Summed in float32, which is fastest, and exact up to 2^24 entries."""
    number = tf.float32 if marked.shape[1] <= 2**24 else tf.float64
    return tf.cast(tf.reduce_sum(tf.cast(marked, number), axis=1), tf.float64)


def _measure_finite(rows: list[Any], bits: list[_Bits], largest: Any) -> Any:
    not_zero = tf.stack([b.not_zero() for b in bits], axis=1)
    normal = tf.stack([b.normal() for b in bits], axis=1)
    sizes = tf.constant([b.size for b in bits], not_zero.dtype)
    none = tf.zeros_like(not_zero)
    counts = tf.stack([none, none, none, sizes - not_zero, not_zero - normal], axis=2)
    max_abs = bits[0].as_float(largest)
    norm = tf.stack([_norm(row, max_abs[:, p]) for p, row in enumerate(rows)], axis=1)
    return tf.concat([counts, tf.stack([max_abs, norm], axis=2)], axis=2)


def _measure_any(values: Any, bits: _Bits) -> Any:
    """[steps, FIELDS] of one parameter."""
    is_finite = bits.magnitude < bits.infinity
    infinite = bits.magnitude == bits.infinity
    positive = values > 0
    classes = [
        bits.magnitude > bits.infinity,
        infinite & positive,
        infinite & ~positive,
    ]
    counts = [_count(c) for c in classes]
    not_zero, normal = bits.not_zero(), bits.normal()
    counts += [bits.size - not_zero, not_zero - normal]
    finite = tf.where(is_finite, bits.magnitude, tf.zeros_like(bits.magnitude))
    max_abs = bits.as_float(tf.reduce_max(finite, axis=1))
    norm = _norm(tf.where(is_finite, values, tf.zeros_like(values)), max_abs)
    return tf.stack([*counts, max_abs, norm], axis=1)


def _norm(finite: Any, max_abs: Any) -> Any:
    """float64 [steps]."""
    if finite.dtype == tf.float64:
        scale = tf.where(max_abs > 0, max_abs, tf.ones_like(max_abs))
        return scale * norms(finite / scale[:, None])
    return norms(finite)  # the square of any narrower number fits into float64


def norms(rows: Any) -> Any:
    """float64 [steps]: 2-norms of the rows of [steps, entries]."""
    wide = tf.cast(rows, tf.float64)
    return tf.sqrt(tf.reduce_sum(wide * wide, axis=1))


def nonfinite(health: Any) -> Any:
    """Number of non-finite entries per parameter; `health` is [..., FIELDS], tensor or array."""
    return health[..., 0] + health[..., 1] + health[..., 2]


def as_dict(row: np.ndarray[Any, Any], size: int) -> dict[str, int | float]:
    """One parameter's health by name, with its number of entries."""
    named: dict[str, int | float] = {"size": size}
    for name, value in zip(FIELDS, row, strict=True):
        named[name] = int(value) if name in COUNTS else float(value)
    return named
