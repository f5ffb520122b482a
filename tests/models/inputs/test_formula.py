"""Formulas: right values, and every wrong one refused in one sentence, at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from models.errors import BadInput
from models.inputs.formula import FUNCTIONS, parse_formula

X = np.linspace(0.1, 0.9, 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sin(3*x) + x^2", lambda x: math.sin(3 * x) + x * x),
        ("sin(3*x) + x**2", lambda x: math.sin(3 * x) + x * x),
        ("x² − x⁻¹·2", lambda x: x * x - 2 / x),
        ("x¹⁰", lambda x: x**10),
        ("-x^2", lambda x: -(x * x)),
        ("2^-1 * x", lambda x: x / 2),
        ("exp(-x) * cos(2*pi*x)", lambda x: math.exp(-x) * math.cos(2 * math.pi * x)),
        ("e^x ÷ π", lambda x: math.exp(x) / math.pi),
        ("log(x) + ln(x) + log2(x) + log10(x)", lambda x: sum(
            [2 * math.log(x), math.log2(x), math.log10(x)]
        )),
        ("sqrt(x) - cbrt(-x)", lambda x: math.sqrt(x) + x ** (1 / 3)),
        ("tanh(x) + sinh(x)/cosh(x)", lambda x: 2 * math.tanh(x)),
        ("asin(x) + acos(x) + atan(x)", lambda x: math.pi / 2 + math.atan(x)),
        ("min(x, 0.5, 1) + max(0.2, x)", lambda x: min(x, 0.5) + max(x, 0.2)),
        ("minimum(x, .5) * maximum(x, .2)", lambda x: min(x, 0.5) * max(x, 0.2)),
        ("sign(x - 0.5) + abs(-x)", lambda x: math.copysign(x != 0.5, x - 0.5) + x),
        ("floor(3*x) + ceil(3*x)", lambda x: math.floor(3 * x) + math.ceil(3 * x)),
        ("7*x // 2 + 7*x % 2", lambda x: 7 * x // 2 + 7 * x % 2),
        ("tan(x)", math.tan),
        ("+1e-3", lambda x: 0.001),
        (" 2 ", lambda x: 2.0),
    ],
)  # fmt: skip
def test_values_are_those_of_the_math_module(text: str, expected: Callable[[float], float]) -> None:
    values = parse_formula(text)(X)
    assert values.dtype == np.float64
    assert values.shape == X.shape
    np.testing.assert_allclose(values, [expected(float(x)) for x in X], rtol=1e-12, atol=1e-12)


def test_x_is_left_alone_and_a_result_is_its_own_array() -> None:
    x = X.copy()
    values = parse_formula("x")(x)
    values += 1
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", ["is empty", "sin(3*x)"]),
        ("  \n", ["is empty"]),
        ("sin(", ["1 closing bracket ) is missing"]),
        ("((x", ["2 closing bracket ) are missing"]),
        ("x)", ["1 opening bracket ( is missing"]),
        ("x +", ["missing after the last +"]),
        ("x ^", ["missing after the last *"]),
        ("2x + 1", ["write 2*x for '2x'"]),
        ("3 sin(x)", ["write 3*sin for '3 sin'"]),
        ("x x", ["operator such as *"]),
        ("sin()", ["gives sin 0 arguments", "sin(x)"]),
        ("sin(x, x)", ["gives sin 2 arguments", "sin(x)"]),
        ("max(x)", ["max too few arguments", "max(x, 1)"]),
        ("sin + 1", ["sin without brackets", "sin(x)"]),
        ("2(x+1)", ["brackets after something that is no function", "* to multiply"]),
        ("x(x+1)", ["brackets after something that is no function", "* to multiply"]),
        ("0,5*x", ["comma", "0.5"]),
        ("y = x", ["contains =", "right"]),
        ("z + 1", ["'z'", "known are x, pi, e", "sin, cos"]),
        ("__import__('os')", ["'__import__'", "not known"]),
        ("eval(x)", ["'eval'", "not known"]),
        ("x.__class__", ["attribute .__class__", "dot"]),
        ("x.real", ["attribute .real"]),
        ("sin(*x)", ["not arithmetic"]),
        ("lambda x: x", ["'lambda'"]),
        ("x if x else 1", ["'if'"]),
        ("[x]", ["contains '['"]),
        ("x < 1", ["contains '<'"]),
        ("'x'*9", ['contains "\'"']),
        ("x @ x", ["contains '@'"]),
        ("1j * x", ["not arithmetic"]),
        ("1j", ["not arithmetic"]),
        ("x; x", ["contains ';'"]),
        ("x\0", ["contains '\\x00'"]),
        ("\ud800", ["contains '\\ud800'"]),
        ("x" + "+x" * 100, ["201 characters", "200 at most"]),
        ("9**9**9", ["infinity", "finite number"]),
        ("9^9^9^9^9", ["infinity"]),
        ("1/0", ["infinity", "finite number"]),
        ("-1/0", ["-infinity"]),
        ("0/0", ["NaN"]),
        ("(-1)**0.5", ["NaN (complex or undefined)"]),
        ("sqrt(-1)", ["NaN (complex or undefined)"]),
        ("1e999", ["infinity"]),
        ("10^39", ["1e+39", "within ±3.4e+38"]),
        ("-" * 150 + "x", ["nested too deeply", "100"]),
    ],
)
def test_bad_formulas_name_the_fault(text: str, facts: list[str]) -> None:
    start = time.thread_time()
    with pytest.raises(BadInput) as caught:
        parse_formula(text)
    assert time.thread_time() - start < 0.5, "seconds of a core"
    assert caught.value.field == "formula"
    for fact in facts:
        assert fact in caught.value.sentence


@pytest.mark.parametrize(
    ("text", "x", "facts"),
    [
        ("1/x", [-1, 0, 1], ["infinity", "at x = 0 ", "1 of 3 points"]),
        ("log(x)", [-2, -1, 0, 1], ["NaN", "at x = -2 ", "3 of 4 points"]),
        ("log(x)", [0, 1], ["-infinity", "at x = 0 ", "1 of 2 points"]),
        ("x^0.5", [-0.5, 0.5], ["NaN (complex", "at x = -0.5 ", "1 of 2"]),
        ("exp(x)", [0, 1000], ["infinity", "at x = 1000 "]),
        ("exp(x)", [0, 100], ["2.69e+43", "at x = 100 ", "3.4e+38"]),
        ("min(x, sqrt(x))", [-1, 1], ["NaN", "at x = -1 "]),
    ],
)
def test_not_finite_on_the_range_names_x_value_and_count(
    text: str, x: list[float], facts: list[str]
) -> None:
    formula = parse_formula(text)
    with pytest.raises(BadInput) as caught:
        formula(np.array(x, dtype=np.float64))
    assert caught.value.field == "formula"
    for fact in facts:
        assert fact in caught.value.sentence


def test_infinity_on_the_way_to_a_finite_value_is_fine() -> None:
    np.testing.assert_array_equal(parse_formula("exp(-1/x^2)")(np.zeros(1)), [0.0])


def test_longest_sum_is_within_the_depth_allowed() -> None:
    text = "+".join(["x"] * 100)
    np.testing.assert_allclose(parse_formula(text)(X), 100 * X)


def test_brackets_to_the_limit_of_length() -> None:
    np.testing.assert_array_equal(parse_formula("(" * 99 + "x" + ")" * 99)(X), X)


def test_equal_texts_make_equal_formulas() -> None:
    assert parse_formula(" x + 1") == parse_formula("x + 1 ")
    assert hash(parse_formula("x")) == hash(parse_formula("x"))


def attempt(text: str, x: NDArray[np.float64]) -> NDArray[np.float64] | BadInput:
    try:
        return parse_formula(text)(x)
    except BadInput as error:
        return error


def evaluate_or_refuse(text: str) -> None:
    x = np.linspace(-2, 2, 257)
    start = time.thread_time()
    result = attempt(text, x)
    assert time.thread_time() - start < 0.5, "seconds of a core"
    if isinstance(result, BadInput):
        assert result.field == "formula"
        assert result.sentence.endswith(".")
        result.sentence.encode()
    else:
        assert result.shape == x.shape
        assert np.isfinite(result.astype(np.float32)).all()


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=220))
def test_any_text_is_evaluated_or_refused(text: str) -> None:
    evaluate_or_refuse(text)


PIECES = [
    *FUNCTIONS, *"x()+-*/%^.,0123456789²⁻π", "**", "//", "pi", "e", " ", "9**9", "1e9", "x.y",
    "0x1f", "1_0", "if", "and", "1j", "0b1", "lambda", "__", "yield", "await", "x:=1", "f''", "\\",
]  # fmt: skip


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=80).map("".join))
def test_any_mixture_of_formula_pieces_is_evaluated_or_refused(text: str) -> None:
    evaluate_or_refuse(text)


EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "e", "pi", "2", "0.5", "99"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**", "%", "//"]), inner).map(
            lambda parts: f"({''.join(parts)})"
        ),
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        inner.map(lambda part: f"-{part}"),
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS)
def test_any_expression_is_evaluated_or_refused(text: str) -> None:
    evaluate_or_refuse(text)


@pytest.mark.parametrize(
    "opening", ["(", "sin(", "x*(", "-", "+-", "x**", "9**", "((x)*", "max(x,"]
)
@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_answers_at_once(opening: str, closed: bool) -> None:
    times = 199 // (len(opening) + closed)
    evaluate_or_refuse(opening * times + "x" + ")" * (closed * times))
