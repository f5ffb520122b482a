"""Clipping does what its definition says, its faults included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.lazy import tf
from models.training.clipping import clip

A = np.array([[3.0, -4.0]], np.float32)  # norm 5
B = np.array([12.0], np.float32)  # global norm 13


def clipped(how: str, threshold: float, *gradients: Any) -> list[Any]:
    tensors = [tf.constant(g, tf.float32) for g in gradients]
    return [g.numpy() for g in clip(tensors, how, tf.constant(threshold))]


@pytest.mark.parametrize(
    ("how", "threshold", "expected"),
    [
        ("off", 1.0, [A, B]),
        ("value", 3.5, [[[3.0, -3.5]], [3.5]]),
        ("norm", 2.5, [A / 2, [2.5]]),
        ("norm", 6.0, [A, B / 2]),
        ("global_norm", 6.5, [A / 2, B / 2]),
        ("global_norm", 13.5, [A, B]),
    ],
)
def test_it_scales_or_cuts_as_defined(how: str, threshold: float, expected: list[Any]) -> None:
    for got, wanted in zip(clipped(how, threshold, A, B), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("how", ["value", "norm", "global_norm"])
def test_nan_survives(how: str) -> None:
    assert np.isnan(clipped(how, 1.0, [np.nan, 1.0])[0]).any()


def test_an_infinite_norm_makes_every_gradient_nan() -> None:
    """1e30 squared leaves float32: documented behaviour of tf.clip_by_global_norm."""
    large, small = clipped("global_norm", 1.0, [1e30, 1e30], [1.0])
    assert np.isnan(large).all()
    assert np.isnan(small).all()
