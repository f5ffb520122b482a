"""Keras optimisers as pure functions of tensors.

Keras has `stateless_apply` for that, but its TensorFlow backend refuses it because of
`tf.distribute`, which is not used here. The mixin takes back the backend's overrides; every update
formula stays Keras's own, bit for bit (tests/models/training/test_optimizers.py).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..lazy import keras

MOMENTUM = 0.9


class _Pure:
    """Overrides of the TensorFlow backend that would need real variables."""

    def _var_key(self, variable: Any) -> int:
        return id(variable)

    def _backend_update_step(
        self, grads: Any, trainable_variables: Any, learning_rate: Any
    ) -> None:
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            self.update_step(gradient, variable, learning_rate)  # type: ignore[attr-defined]

    def assign(self, variable: Any, value: Any) -> None:
        variable.assign(value)

    def assign_add(self, variable: Any, value: Any) -> None:
        variable.assign(variable + value)

    def assign_sub(self, variable: Any, value: Any) -> None:
        variable.assign(variable - value)

    def stateless_apply(
        self, optimizer_variables: Any, grads: Any, trainable_variables: Any
    ) -> Any:
        own, trained = self.variables, self._trainable_variables  # type: ignore[attr-defined]
        state = [*zip(own, optimizer_variables, strict=True)]
        state += zip(trained, trainable_variables, strict=True)
        with keras.StatelessScope(state_mapping=state) as scope:
            self.apply(grads)  # type: ignore[attr-defined]
        return (
            [scope.get_current_value(v) for v in trained],
            [scope.get_current_value(v) for v in own],
        )


@cache
def _pure(base: str) -> Any:
    return type(base, (_Pure, getattr(keras.optimizers, base)), {})


class PureOptimizer:
    """`apply(state, gradients, parameters, learning_rate) -> (parameters, state)`, tensors only."""

    def __init__(self, name: str, shapes: list[tuple[int, ...]], dtype: str, loss_scaling: bool):
        settings = {"momentum": MOMENTUM} if name == "momentum" else {}
        inner = _pure("Adam" if name == "adam" else "SGD")(**settings)
        self.loss_scaling = loss_scaling
        self._optimizer = keras.optimizers.LossScaleOptimizer(inner) if loss_scaling else inner
        self._optimizer.build([keras.Variable(keras.ops.zeros(s), dtype=dtype) for s in shapes])
        variables = self._optimizer.variables
        self._rate = next(i for i, v in enumerate(variables) if v is inner._learning_rate)
        self._scale = next((i for i, v in enumerate(variables) if v.name == "dynamic_scale"), None)

    def initial_state(self) -> list[Any]:
        return [tf_value(variable) for variable in self._optimizer.variables]

    def scale(self, state: list[Any]) -> Any:
        """The present loss scale, or None without loss scaling."""
        return None if self._scale is None else state[self._scale]

    def apply(
        self, state: list[Any], gradients: list[Any], parameters: list[Any], learning_rate: Any
    ) -> tuple[list[Any], list[Any]]:
        """`gradients` are unscaled; with loss scaling, non-finite ones halve the scale."""
        state = list(state)
        state[self._rate] = keras.ops.cast(learning_rate, state[self._rate].dtype)
        if self._scale is not None:
            # Keras divides by the scale again; multiplying by a power of two is exact.
            gradients = [g * keras.ops.cast(state[self._scale], g.dtype) for g in gradients]
        parameters, state = self._optimizer.stateless_apply(state, gradients, parameters)
        return list(parameters), list(state)


def tf_value(variable: Any) -> Any:
    return keras.ops.convert_to_tensor(variable)
