"""Gradient clipping, by TensorFlow's own functions: with their virtues and their faults."""

from __future__ import annotations

from typing import Any

from ..lazy import tf


def clip(gradients: list[Any], how: str, threshold: Any) -> list[Any]:
    """Gradients after clipping; `how` is off, value, norm or global_norm, `threshold` a scalar.

    As documented, `tf.clip_by_global_norm` makes every gradient NaN where the norm is infinite,
    also when each entry is finite and only its square overflows.
    """
    if how == "value":
        return [tf.clip_by_value(g, -threshold, threshold) for g in gradients]
    if how == "norm":
        return [tf.clip_by_norm(g, threshold) for g in gradients]
    if how == "global_norm":
        return list(tf.clip_by_global_norm(gradients, threshold)[0])
    return gradients
