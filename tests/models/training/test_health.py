"""Health against NumPy, which sees subnormals because it does not flush them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.lazy import tf
from models.training.health import COUNTS, FIELDS, as_dict, measure, nonfinite

DTYPES: dict[str, tuple[Any, Any]] = {
    "float64": (np.float64, np.uint64),
    "float32": (np.float32, np.uint32),
    "float16": (np.float16, np.uint16),
    "bfloat16": (ml_dtypes.bfloat16, np.uint16),
}
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
Array = np.ndarray[Any, Any]


def naive(gradient: Array) -> dict[str, float]:
    """By NumPy's own predicates, in a wider format than the gradient's."""
    tiny = float(ml_dtypes.finfo(gradient.dtype).smallest_normal)
    wide = gradient.astype(np.longdouble).ravel()
    magnitude = np.abs(wide)
    finite = magnitude[np.isfinite(wide)]
    return {
        "nan": int(np.isnan(wide).sum()),
        "posinf": int((wide == np.inf).sum()),
        "neginf": int((wide == -np.inf).sum()),
        "zero": int((wide == 0).sum()),
        "subnormal": int(((magnitude > 0) & (magnitude < tiny)).sum()),
        "max_abs": float(finite.max(initial=0)),
        "norm": float(np.sqrt(np.sum(finite**2))),
    }


def check(gradients: list[Array]) -> None:
    health = measure([tf.constant(g) for g in gradients]).numpy()
    assert health.shape == (len(gradients), len(FIELDS))
    for row, gradient in zip(health, gradients, strict=True):
        expected = naive(gradient)
        for name, value in zip(FIELDS, row, strict=True):
            if name in COUNTS:
                assert value == expected[name], name
            else:  # a subnormal magnitude may be flushed to zero
                tiny = float(ml_dtypes.finfo(gradient.dtype).smallest_normal)
                assert value == pytest.approx(
                    expected[name], rel=1e-12, abs=tiny * gradient.size
                ), name


@every_dtype
@given(data=st.data())
def test_any_bits_are_counted_as_numpy_counts_them(dtype: str, data: st.DataObject) -> None:
    number, bits = DTYPES[dtype]
    width = np.dtype(bits).itemsize * 8
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    words = [int(np.array(v).astype(number).view(bits)) for v in special]
    edges = [int(np.array(ml_dtypes.finfo(number).smallest_normal).astype(number).view(bits))]
    edges += [edges[0] - 1, 1, int(np.array(ml_dtypes.finfo(number).max).astype(number).view(bits))]
    edges += [edge | 1 << (width - 1) for edge in edges]
    entry = st.sampled_from(words + edges) | st.integers(0, 2**width - 1)
    arrays = st.lists(entry, min_size=1, max_size=12).map(lambda w: np.array(w, bits).view(number))
    check(data.draw(st.lists(arrays, min_size=1, max_size=3)))


@every_dtype
def test_each_class_is_counted_once(dtype: str) -> None:
    number = DTYPES[dtype][0]
    info = ml_dtypes.finfo(number)
    values = [0.0, -0.0, np.inf, np.inf, -np.inf, np.nan, -np.nan, 1.0, float(info.max)]
    tiny = float(info.smallest_subnormal)
    gradient = np.array([*values, tiny, -tiny, float(info.smallest_normal)]).astype(number)
    health = as_dict(measure([tf.constant(gradient)]).numpy()[0], gradient.size)
    counted = {name: health[name] for name in COUNTS}
    assert counted == {"nan": 2, "posinf": 2, "neginf": 1, "zero": 2, "subnormal": 2}
    assert health["size"] == 12
    assert health["max_abs"] == float(info.max)


@pytest.mark.parametrize(("dtype", "value"), [("float32", 1e30), ("float64", 1e300)])
def test_the_norm_does_not_overflow(dtype: str, value: float) -> None:
    gradient = np.full((30, 30), value, dtype)
    norm = measure([tf.constant(gradient)]).numpy()[0, FIELDS.index("norm")]
    assert norm == pytest.approx(30 * float(gradient[0, 0]), rel=1e-13)


def test_a_gradient_without_a_finite_entry_has_no_magnitude() -> None:
    health = measure([tf.constant([np.nan, np.inf, -np.inf])]).numpy()[0]
    assert health.tolist() == [1, 1, 1, 0, 0, 0, 0]


def test_parameters_do_not_mix() -> None:
    check([np.array([[1.0, np.nan]]), np.zeros((2, 3)), np.array(-np.inf), np.array([3.0, 4.0])])


def test_nonfinite_adds_nan_and_both_infinities() -> None:
    health = np.array([[1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 9, 9, 9, 9]])
    assert nonfinite(health).tolist() == [6, 0]
