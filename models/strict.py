"""Values as strict JSON can hold them."""

from __future__ import annotations

import math
from typing import Any


def strict(value: Any) -> Any:
    """The same with non-finite floats as the strings "NaN", "Infinity" and "-Infinity".

    JSON has no such numbers, and null would not tell them apart. Python's `float()` and
    JavaScript's `Number()` read the strings back.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    return value
