"""What each step of a burst leaves behind, and the figures that are made of it.

A small model's gradients and weights are recorded, and measured after the burst for all its steps
at once, because starting an operation costs more than its entries. A large model's are measured
step by step, because copying them costs more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lazy import tf
from .health import FIELDS, NONFINITE, measure, measure_rows, norms

SMALL = 16_384  # entries of all parameters together
LARGEST_RECORD = 4_000_000  # entries of all steps of a burst together


class Watch:
    """Watches models whose parameters have the given numbers of entries.

    `gradients` and `weights` give what a step writes into the `arrays`; `figures` makes of all that
    was written float64 [steps, columns]: the health of the raw gradients, of the applied ones, and
    the update ratio, each parameter by parameter.
    """

    def __init__(
        self, sizes: list[int], dtype: str, weight_dtype: str, *, clipped: bool, scaled: bool
    ) -> None:
        self._sizes = sizes
        self._clipped = clipped
        self._recording = sum(sizes) <= SMALL and not scaled
        self._dtypes = [dtype, weight_dtype, weight_dtype] if clipped else [dtype, weight_dtype]
        self.longest = LARGEST_RECORD // sum(sizes) if self._recording else None  # steps

    def arrays(self) -> tuple[Any, ...]:
        parameters = len(self._sizes)
        if self._recording:
            return tuple(array(dtype, sum(self._sizes)) for dtype in self._dtypes)
        return array("float64", parameters * 2 * len(FIELDS)), array("float64", parameters)

    def gradients(
        self, raw: list[Any], applied: list[Any], scale: Any
    ) -> tuple[tuple[Any, ...], Any]:
        """What to write, and whether all gradients are finite; `scale` is the loss's, or None."""
        if self._recording:
            record = tuple(_flat(g) for g in ([raw, applied] if self._clipped else [raw]))
            return record, tf.reduce_all([tf.reduce_all(tf.math.is_finite(r)) for r in record])
        health = [_unscaled(measure(raw), scale)]
        if self._clipped or scale is not None:
            health.append(measure(applied))
        bad = tf.add_n([tf.reduce_sum(h[:, :NONFINITE]) for h in health])
        return (tf.reshape(tf.concat([health[0], health[-1]], axis=0), [-1]),), bad == 0

    def weights(self, old: list[Any], new: list[Any]) -> tuple[Any, ...]:
        if self._recording:
            return (_flat(old),)
        updates = [b - a for a, b in zip(old, new, strict=True)]
        before, change = (
            tf.concat([norms(tf.reshape(t, [1, -1])) for t in tensors], axis=0)
            for tensors in (old, updates)
        )
        return (_ratio(change, before),)

    def figures(self, written: list[Any], weights: list[Any]) -> Any:
        """`written` are the stacked arrays, `weights` those after the last step."""
        if not self._recording:
            return tf.concat(written, axis=1)
        *gradients, before = written
        health = [measure_rows(self._split(g)) for g in gradients]
        after = tf.concat([before[1:], _flat(weights)[None]], axis=0)[: tf.shape(before)[0]]
        change, size = (
            tf.stack([norms(rows) for rows in self._split(all_rows)], axis=1)
            for all_rows in (after - before, before)
        )
        columns = [tf.reshape(h, [tf.shape(before)[0], self._columns]) for h in health]
        return tf.concat([columns[0], columns[-1], _ratio(change, size)], axis=1)

    @property
    def _columns(self) -> int:
        return len(self._sizes) * len(FIELDS)

    def _split(self, rows: Any) -> list[Any]:
        return list(tf.split(rows, self._sizes, axis=1))


def array(dtype: str, columns: int) -> Any:
    """A TensorArray of rows that grows step by step."""
    return tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=[columns])


def _flat(tensors: list[Any]) -> Any:
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)


def _unscaled(health: Any, scale: Any) -> Any:
    """Magnitudes in units of the unscaled loss."""
    if scale is None:
        return health
    magnitudes = health[:, -2:] / tf.cast(scale, tf.float64)
    return tf.concat([health[:, :-2], magnitudes], axis=1)


def _ratio(change: Any, size: Any) -> Any:
    """Norm of the update over norm of the weights; NaN where the weights are 0."""
    return tf.where(size > 0, change / size, tf.constant(np.nan, tf.float64))
