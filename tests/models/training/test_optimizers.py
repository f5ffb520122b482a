"""Pure optimisers give the bits of the Keras optimisers they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.lazy import keras, tf
from models.training.optimizers import PureOptimizer

SHAPES: list[tuple[int, ...]] = [(4, 3), (3,), ()]
RATES = [0.1, 0.1, 0.03, 0.01] * 5

KERAS: dict[str, Any] = {
    "sgd": lambda: keras.optimizers.SGD(momentum=0.0),
    "momentum": lambda: keras.optimizers.SGD(momentum=0.9),
    "adam": lambda: keras.optimizers.Adam(epsilon=1e-7),
}


def arrays(generator: np.random.Generator, dtype: str) -> list[Any]:
    return [generator.normal(size=shape).astype(dtype) for shape in SHAPES]


def gradients_of(steps: int, dtype: str, overflow_at: tuple[int, ...] = ()) -> list[list[Any]]:
    generator = np.random.default_rng(1)
    made = [arrays(generator, dtype) for _ in range(steps)]
    for step in overflow_at:
        made[step][0][0, 0] = np.inf
    return made


def pure_run(
    optimizer: PureOptimizer, start: list[Any], gradients: list[list[Any]]
) -> tuple[list[Any], list[Any]]:
    parameters, state = [tf.constant(p) for p in start], optimizer.initial_state()
    step = tf.function(optimizer.apply, autograph=False)
    for rate, gradient in zip(RATES, gradients, strict=True):
        parameters, state = step(
            state, [tf.constant(g) for g in gradient], parameters, tf.constant(rate, tf.float64)
        )
    return [p.numpy() for p in parameters], state


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", list(KERAS))
def test_same_bits_as_the_stateful_optimiser(name: str, dtype: str) -> None:
    start = arrays(np.random.default_rng(0), dtype)
    gradients = gradients_of(len(RATES), dtype)
    ours, _ = pure_run(PureOptimizer(name, SHAPES, dtype, loss_scaling=False), start, gradients)

    theirs = KERAS[name]()
    variables = [keras.Variable(p, dtype=dtype) for p in start]
    theirs.build(variables)
    for rate, gradient in zip(RATES, gradients, strict=True):
        theirs.learning_rate = rate
        theirs.apply([tf.constant(g) for g in gradient], variables)
    assert [p.tobytes() for p in ours] == [v.numpy().tobytes() for v in variables]


@pytest.mark.parametrize("name", list(KERAS))
def test_same_bits_and_scale_with_loss_scaling(name: str) -> None:
    """Ours takes unscaled gradients, Keras scaled ones; an overflow halves the scale of both."""
    start = arrays(np.random.default_rng(0), "float32")
    gradients = gradients_of(len(RATES), "float32", overflow_at=(0, 1, 7))
    optimizer = PureOptimizer(name, SHAPES, "float32", loss_scaling=True)
    ours, state = pure_run(optimizer, start, gradients)

    inner = KERAS[name]()
    theirs = keras.optimizers.LossScaleOptimizer(inner)
    variables = [keras.Variable(p, dtype="float32") for p in start]
    theirs.build(variables)
    for rate, gradient in zip(RATES, gradients, strict=True):
        inner.learning_rate = rate
        scale = theirs.dynamic_scale.numpy()
        theirs.apply([tf.constant(g * scale) for g in gradient], variables)
    assert [p.tobytes() for p in ours] == [v.numpy().tobytes() for v in variables]
    assert float(optimizer.scale(state)) == float(theirs.dynamic_scale) == 2.0**12


def test_without_loss_scaling_there_is_no_scale() -> None:
    optimizer = PureOptimizer("adam", SHAPES, "float32", loss_scaling=False)
    assert optimizer.scale(optimizer.initial_state()) is None
