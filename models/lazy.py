"""TensorFlow and Keras, imported at their first use.

Importing TensorFlow takes seconds. Pages must be able to list scenarios and knobs before that, so
nothing under `models` imports it at the top of a file.
"""

from __future__ import annotations

import importlib
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

# TensorFlow and Keras import each other: two threads that begin at different ends would each wait
# for the other, and the import system would hand out a module that is only half there.
_one_at_a_time = threading.RLock()


class _LazyModule:
    """Stands for a module and imports it when an attribute is first asked for, in any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            with _one_at_a_time:
                self._module = importlib.import_module(self._name)
        return getattr(self._module, attribute)


if TYPE_CHECKING:
    import keras
    import tensorflow as tf
else:
    tf = _LazyModule("tensorflow")
    keras = _LazyModule("keras")

__all__ = ["keras", "tf"]
