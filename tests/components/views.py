"""Synthetic histories for the figures' tests, and a reader for what the browser would read."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.training.history import HealthArrays, HistoryView

GATES = ("Wz", "Uz", "bz", "Wr", "Ur", "br", "Wh", "Uh", "bh")
NAMES = (*(f"{part}.{g}" for part in ("encoder", "decoder") for g in GATES), "Wy", "by")
DTYPES = {"i1": "i1", "u1": "u1"} | {t: f"<{t}" for t in ("i2", "u2", "i4", "u4", "f4", "f8")}


def view(columns: int = 200, width: int = 1, parameters: int = 20, seed: int = 0) -> HistoryView:
    """Healthy gradients whose magnitudes wander, as in a run; a few entries are zero."""
    rng = np.random.default_rng(seed)
    shape = (parameters, columns)
    sizes = np.where(np.arange(parameters) % 3 == 2, 64, 4096)
    largest = 10 ** (
        np.cumsum(rng.normal(0, 0.1, shape), axis=1) + rng.uniform(-4, 1, (len(sizes), 1))
    )
    none = np.zeros(shape, np.int64)
    zero = rng.binomial(sizes[:, None], 0.01, shape)
    first = np.arange(columns) * width
    step = first + rng.integers(0, width, shape)
    norm = largest * np.sqrt(sizes[:, None]) / 4
    raw = HealthArrays(none, none, none, zero, none, largest, norm, step)
    cut = HealthArrays(none, none, none, zero, none, largest / 10, norm / 10, step)
    ratio = 10 ** rng.normal(-3, 0.3, shape)
    loss = np.exp(-np.linspace(0, 6, columns))
    return HistoryView(
        NAMES[:parameters], sizes, first, first + width - 1, loss, raw, cut, ratio, ()
    )


def decode(spec: dict[str, Any]) -> NDArray[Any]:
    """A typed-array spec as Plotly reads it."""
    array = np.frombuffer(b64decode(spec["bdata"]), DTYPES[spec["dtype"]])
    return array.reshape([int(n) for n in spec["shape"].split(",")]) if "shape" in spec else array


def customdata(trace: dict[str, Any]) -> NDArray[Any]:
    """[rows, columns, fields] as `plotly_view.js` puts it together."""
    z = decode(trace["z"])
    fields: list[NDArray[Any]] = []
    for plane in trace["customdata"]["planes"]:
        values = (decode(plane) if "bdata" in plane else z).astype(np.float64)
        if "words" in plane:
            words = np.array(["", *plane["words"]], object)
            fields.append(np.broadcast_to(words[values.astype(int) + 1], z.shape))
            continue
        if plane.get("tenths"):
            values = 10 ** (values / 10)
        if "times" in plane:
            values = values * fields[plane["times"]]
        if "plus" in plane:
            values = values + fields[plane["plus"]]
        fields.append(np.broadcast_to(values, z.shape))
    return np.stack(fields, axis=-1)
