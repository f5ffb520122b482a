"""How finite one gradient is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lazy import tf
from .report import Health
from .values import Values, array


def dense(gradient: Any) -> Any:
    """The numbers of a gradient: those of an embedding come as slices."""
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def health_of(values: Values, gradient: Any) -> Health:
    """Counts what a gradient (None when unconnected) is made of."""
    if gradient is None:
        return Health("unconnected")
    numbers = array(dense(gradient))
    if values.bad(dense(gradient)) is None:
        size = np.abs(numbers)
        return Health(
            "finite", numbers.size, zero=int((numbers == 0).sum()),
            largest=float(size.max(initial=0.0)),
        )  # fmt: skip
    nan, inf = np.isnan(numbers), np.isinf(numbers)
    real = np.real(numbers)
    words = [word for word, mask in (("nan", nan), ("inf", inf)) if mask.any()]
    good = np.abs(numbers[np.isfinite(numbers)])
    return Health(
        " and ".join(words), numbers.size, int(nan.sum()), int((inf & (real > 0)).sum()),
        int((inf & (real < 0)).sum()), int((numbers == 0).sum()), float(good.max(initial=0.0)),
    )  # fmt: skip
