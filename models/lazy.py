"""TensorFlow and Keras, imported at their first use.

Importing TensorFlow takes seconds. Pages must be able to list scenarios and knobs before that, so
nothing under `models` imports it at the top of a file.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class _LazyModule:
    """Stands for a module and imports it when an attribute is first asked for (thread-safe: the
    import system holds its own lock)."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


if TYPE_CHECKING:
    import keras
    import tensorflow as tf
else:
    tf = _LazyModule("tensorflow")
    keras = _LazyModule("keras")

__all__ = ["keras", "tf"]
