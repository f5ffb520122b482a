"""Guards that rounding swallowed: 1 − ε that is 1, x + ε that is x, an ε that is 0."""

from __future__ import annotations

import ast
import contextlib
import linecache
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .circumstances import Dependence
from .observe import FORWARD, Operation
from .values import array, at, is_numeric, limits
from .walk import Walk, ancestors

_ON_THE_WAY_NAMES = """
    Abs Add AddV2 Cast ClipByValue ConcatV2 ExpandDims GatherV2 Identity Maximum Mean Minimum Mul
    Neg Pack Pow RealDiv Reshape Select SelectV2 Sigmoid Sqrt Square Squeeze StridedSlice Sub Sum
    Transpose
"""
_ON_THE_WAY = frozenset(_ON_THE_WAY_NAMES.split())


def lost_epsilon(
    walk: Walk, operands: list[Any], index: tuple[int, ...], shape: tuple[int, ...],
    depends: Dependence,
) -> Operation | None:  # fmt: skip
    """The guard on the way to `operands` whose constant made no difference, if there is one."""
    made = walk.replay.observation.made
    for operand in operands:
        for seen in ancestors(operand, made, _ON_THE_WAY, 7):
            if _swallowed(seen, index, shape, depends):
                return seen
    return None


def overflowed_constant(seen: Operation, tensor: Any) -> float | None:
    """The finite number of the program that became the Inf which `seen` was given, if there is
    one: a dtype that cannot hold it rounds it unseen."""
    if tensor.shape.rank or not np.isinf(array(tensor)):
        return None
    top = limits(tensor)[0]
    return next((v for v in _written(seen) if math.isfinite(v) and abs(v) > top), None)


def _swallowed(
    seen: Operation, index: tuple[int, ...], shape: tuple[int, ...], depends: Dependence
) -> bool:
    output = seen.outputs[0]
    if not is_numeric(output):
        return False
    if seen.written is not None:
        written = list(_written(seen))
        if any(_rounds_away(v, output) for v in written) or _one_sided(written, output):
            return True
    result = _value(output, index, shape)
    inputs = [(t, _value(t, index, shape)) for t in seen.inputs if is_numeric(t)]
    if result is None or any(value is None for _, value in inputs):
        return False
    moving = depends(output) or seen.stage != FORWARD
    if seen.op in ("AddV2", "Add", "Sub") and len(inputs) == 2:
        left, right = inputs
        return any(
            _no_op(x, c, result) for x, c in ((left, right), (right, left))
            if not (moving and depends(c[0]))
        )  # fmt: skip
    if moving:
        tiny = limits(output)[1]
        return seen.op == "Maximum" and any(
            not depends(c) and 0 < abs(value) < tiny and abs(result) < tiny for c, value in inputs
        )
    # A constant that was worked out inside the program and vanished there.
    vanishes = seen.op in ("Cast", "Mul", "Square", "Pow") and bool(inputs)
    return vanishes and result == 0 and all(value != 0 for _, value in inputs)


def _no_op(x: tuple[Any, Any], constant: tuple[Any, Any], result: Any) -> bool:
    """Whether adding a scalar constant left a number as it was."""
    (_, number), (tensor, added) = x, constant
    if tensor.shape.rank:
        return False
    _, tiny, spacing = limits(tensor)
    small = abs(added) <= spacing * max(abs(number), tiny / spacing)
    return bool(abs(result) == abs(number) and small and added != number)


def _value(tensor: Any, index: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    values = array(tensor)
    if values.size == 1:
        return values.ravel()[0].item()
    return at(values, index, shape)


def _rounds_away(number: float, output: Any) -> bool:
    """Whether a number that is not 0 or ±1 becomes so in the dtype, or is below its smallest."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = float(np.asarray(number, np.float64).astype(output.dtype.as_numpy_dtype))
    below = 0 < abs(number) < limits(output)[1]
    return below or (rounded in (0.0, 1.0, -1.0) and rounded != number)


def _one_sided(written: list[float], output: Any) -> bool:
    """Whether bounds ε and 1 stand together: the 1 was 1 − ε before rounding, even in Python."""
    spacing = limits(output)[2]
    return 1.0 in written and any(0 < v < spacing / 2 for v in written)


def _written(seen: Operation) -> Iterator[float]:
    """Every plain number that the guard's own expression, or the library between it and the
    operation, holds."""
    names = seen.written or {}
    yield from (value for name, value in names.items() if "." in name)
    segment = _segment(seen)
    try:
        tree = ast.parse(segment.strip())
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            value = _evaluate(node, names)
            if value is not None:
                yield value


def _segment(seen: Operation) -> str:
    """The text of the expression that ran the operation."""
    code, lasti = seen.code, seen.lasti
    if code is None:  # of a graph only the line is known
        return linecache.getline(seen.file, seen.line) if seen.file else ""
    positions = list(code.co_positions())
    first, last, start, end = positions[lasti // 2] if lasti // 2 < len(positions) else (None,) * 4
    if first is None or last is None or start is None or end is None:
        return linecache.getline(code.co_filename, seen.line)
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    if not lines or not lines[0]:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode()


_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}


def _evaluate(node: ast.expr, names: dict[str, float]) -> float | None:
    """The value of an expression of plain numbers and known names; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _evaluate(node.operand, names)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _evaluate(node.left, names), _evaluate(node.right, names)
        if left is not None and right is not None:
            with contextlib.suppress(ArithmeticError, ValueError):
                return _ARITHMETIC[type(node.op)](left, right)
    return None
