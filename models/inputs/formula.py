"""A formula in x that a person types, evaluated by simpleeval and never by `eval`.

simpleeval walks Python's syntax tree and calls only what it was given. asteval would also run
loops and assignments, which a formula has no use for; numexpr hands its text to `eval`.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpleeval import SimpleEval

from ..errors import BadInput
from .text import LARGEST, shown

MAX_CHARACTERS = 200
MAX_DEPTH = 100
CONSTANTS = {"pi": np.float64(np.pi), "e": np.float64(np.e)}
ONE_ARGUMENT: dict[str, Callable[..., Any]] = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "ln": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
}
TWO_OR_MORE: dict[str, Callable[..., Any]] = {
    "min": lambda *values: functools.reduce(np.minimum, values),
    "max": lambda *values: functools.reduce(np.maximum, values),
    "minimum": lambda *values: functools.reduce(np.minimum, values),
    "maximum": lambda *values: functools.reduce(np.maximum, values),
}
FUNCTIONS = ONE_ARGUMENT | TWO_OR_MORE
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_TYPED = {"^": "**", "−": "-", "–": "-", "×": "*", "·": "*", "÷": "/", "π": "pi"}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


class _Float64Eval(SimpleEval):  # type: ignore[misc]
    """Every number is float64, so no power grows into an integer of a million digits."""

    @staticmethod
    def _eval_constant(node: ast.Constant) -> np.float64:
        return np.float64(node.value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Formula:
    """A checked formula: `formula(x)` is its value at each x. Made by `parse_formula`."""

    text: str
    tree: ast.expr = field(repr=False, compare=False)

    def __call__(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values, float64 of x's shape.

        Raises BadInput(field="formula") naming the first x at which the value is not a finite
        number, or too large for float32.
        """
        evaluator = _Float64Eval(OPERATORS, FUNCTIONS, {**CONSTANTS, "x": x})
        with np.errstate(all="ignore"):
            value = evaluator.eval(self.text, previously_parsed=self.tree)
        y = np.array(np.broadcast_to(value, np.shape(x)), dtype=np.float64)
        unusable = ~(np.abs(y) <= LARGEST)
        if unusable.any():
            first = tuple(np.argwhere(unusable)[0])
            count = (
                f" (no finite number at {unusable.sum()} of {y.size} points)" if y.size > 1 else ""
            )
            raise _refused(
                f"{_named(float(y[first]))} at x = {float(x[first]):.6g}{count}; "
                f"it must be a finite number within ±{LARGEST:.1e} over the whole range of x"
            )
        return y


def parse_formula(text: str) -> Formula:
    """Formula from what a person typed, such as sin(3x) written sin(3*x) + x^2.

    Python's operators + - * / // % **, with ^ and superscript digits for powers, and typographic
    minus, times and π. Raises BadInput(field="formula") for text that is no such formula, and at
    once for a constant that is not finite. Answers within milliseconds whatever the text.
    """
    source = _normalised(text)
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refused(f"cannot be read: {_syntax_problem(source)}") from None
    _check(tree)
    formula = Formula(text.strip(), tree)
    if not any(isinstance(node, ast.Name) and node.id == "x" for node in ast.walk(tree)):
        formula(np.zeros(1))
    return formula


def _normalised(text: str) -> str:
    """What was typed as Python would write it; refuses unknown names and characters."""
    if not text.strip():
        raise _refused("is empty; write one in x, such as sin(3*x) + x^2")
    if len(text) > MAX_CHARACTERS:
        raise _refused(f"has {len(text)} characters; it may have {MAX_CHARACTERS} at most")
    source = re.sub(
        "[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda found: f"**({found[0].translate(_SUPERSCRIPTS)})", text
    )
    for typed, python in _TYPED.items():
        source = source.replace(typed, python)
    source = " ".join(source.split())
    if "=" in source:
        raise _refused("contains =; write only what stands on its right")
    for name in re.findall(r"(?<![\w.])[^\W\d]\w*", source):
        if name not in {"x", *CONSTANTS, *FUNCTIONS}:
            raise _refused(
                f"contains {shown(name)}, which is not known; known are x, "
                f"{', '.join(CONSTANTS)} and the functions {', '.join(FUNCTIONS)}"
            )
    strange = re.search(r"[^\w .,+\-*/%()]", source)
    if strange:
        raise _refused(
            f"contains {shown(strange[0])}; use only numbers, names, brackets ( ) "
            "and + - * / // % ^"
        )
    return source


def _syntax_problem(source: str) -> str:
    missing = source.count("(") - source.count(")")
    if missing:
        bracket = "closing bracket )" if missing > 0 else "opening bracket ("
        return f"{abs(missing)} {bracket} {'is' if abs(missing) == 1 else 'are'} missing"
    joined = re.search(r"(?<![\w.])([\d.]+) ?([^\W\d]\w*)", source)
    if joined:
        return f"write {joined[1]}*{joined[2]} for {shown(joined[0])}"
    last = re.search(r"[-+*/%,]$", source)
    if last:
        return f"something is missing after the last {last[0]}"
    return "a number or name is missing, or an operator such as * between two of them"


def _check(node: ast.AST, depth: int = 1) -> None:
    """Refuses every construct but numbers, x, constants, arithmetic and calls of FUNCTIONS."""
    if depth > MAX_DEPTH:
        raise _refused(f"is nested too deeply; {MAX_DEPTH} levels are allowed")
    match node:
        case ast.Constant(value=int() | float()):
            return
        case ast.Name(id=name):
            if name in FUNCTIONS:
                raise _refused(f"uses {name} without brackets; write {name}(x)")
            return
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            parts = [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            parts = [left, right]
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in FUNCTIONS:
            _check_argument_count(name, len(parts))
        case ast.Call():
            raise _refused("has brackets after something that is no function; write * to multiply")
        case ast.Attribute(attr=name):
            raise _refused(f"asks for the attribute .{name}; a dot belongs only inside a number")
        case ast.Tuple():
            raise _refused("has a comma outside a function; write decimals with a point, as in 0.5")
        case _:
            raise _refused("is not arithmetic; use numbers, x, + - * / // % ^ and functions")
    for part in parts:
        _check(part, depth + 1)


def _check_argument_count(name: str, count: int) -> None:
    if name in ONE_ARGUMENT and count != 1:
        raise _refused(f"gives {name} {count} arguments; it takes one, as in {name}(x)")
    if name in TWO_OR_MORE and count < 2:
        raise _refused(f"gives {name} too few arguments; it takes two or more, as in {name}(x, 1)")


def _named(value: float) -> str:
    if np.isnan(value):
        return "is NaN (complex or undefined)"
    return f"is {value:.3g}".replace("inf", "infinity")


def _refused(what: str) -> BadInput:
    return BadInput(f"The formula {what}.", "formula")
