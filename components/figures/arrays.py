"""Arrays in the compact form that Plotly and `components/browser/plotly_view.js` read."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CODES = {
    "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8",
}  # fmt: skip

Z: dict[str, Any] = {}  # the plane that is the trace's own z


def typed(array: NDArray[Any]) -> dict[str, Any]:
    """A Plotly typed-array spec: `dtype`, base64 `bdata` and, beyond one dimension, `shape`.

    Args:
        array: of 8- to 32-bit integers or 32- or 64-bit floats, rank 1 to 3; may hold NaN and Inf.

    Raises:
        TypeError: a dtype that Plotly does not read (64-bit integers, bool, objects).
    """
    if array.dtype.name not in _CODES:
        raise TypeError(f"Plotly reads no arrays of {array.dtype}.")
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    spec = {"dtype": _CODES[array.dtype.name], "bdata": b64encode(little.tobytes()).decode()}
    if array.ndim > 1:
        spec["shape"] = ", ".join(map(str, array.shape))
    return spec


def planes(*items: dict[str, Any]) -> dict[str, Any]:
    """A heatmap's `customdata`, one plane a field, put together in the browser.

    Field by field the numbers compress to about a seventh of what Plotly's own [rows, columns,
    fields] takes. A plane is a spec of rank 2 with as many rows and columns as z, or one of either
    (it is repeated); or `Z`. Besides, `tenths=True` says that it holds tenths of log10; `times=i`
    and `plus=i`, that field i is to be multiplied with it or added to it; `words=[…]`, that it
    holds places in this list, whose texts are the field.
    """
    return {"planes": list(items)}


def tenths(magnitude: NDArray[np.floating[Any]]) -> NDArray[np.int16]:
    """Tenths of log10, the relative precision 12 %; 0 becomes 10⁻⁹⁹⁹, which is 0 again."""
    usable = np.isfinite(magnitude) & (magnitude > 0)
    result = np.full(magnitude.shape, -999.0)
    np.log10(magnitude, out=result, where=usable)
    return np.round(result * 10).astype(np.int16)


def smallest(integers: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Whole numbers in as few bytes as they need; floats beyond 32 bits."""
    low, high = int(integers.min(initial=0)), int(integers.max(initial=0))
    for dtype in (np.uint8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return integers.astype(dtype)
    return integers.astype(np.float64)


def shortest(floats: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """In 32 bits if they lose nothing by it."""
    with np.errstate(over="ignore"):
        single = floats.astype(np.float32)
    return single if np.array_equal(single, floats, equal_nan=True) else floats


def rounded(floats: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """Within a thousandth: the bits dropped are zero, which compresses well."""
    mantissa, exponent = np.frexp(floats)
    return shortest(np.ldexp(np.trunc(mantissa * 2048) / 2048, exponent))
