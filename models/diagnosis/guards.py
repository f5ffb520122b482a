"""Guards that rounding swallowed: 1 − ε that is 1, x + ε that is x, an ε that is 0."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from typing import Any

import numpy as np

from .circumstances import Dependence
from .observe import Operation
from .values import array, at, is_numeric, limits
from .walk import Walk, ancestors

_ON_THE_WAY = (
    "AddV2", "Add", "Sub", "Mul", "Neg", "Maximum", "Minimum", "ClipByValue", "Cast", "Identity", "Reshape",
    "Square", "Sum", "ExpandDims", "Squeeze", "StridedSlice", "Pack", "Abs", "RealDiv", "Sigmoid",
    "GatherV2", "Transpose", "Select", "SelectV2", "ConcatV2", "Mean", "Sqrt", "Pow",
)  # fmt: skip


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


def _swallowed(
    seen: Operation, index: tuple[int, ...], shape: tuple[int, ...], depends: Dependence
) -> bool:
    if not is_numeric(seen.outputs[0]):
        return False
    if seen.written is not None:
        written = list(_written(seen))
        if any(_rounds_away(v, seen.outputs[0]) for v in written) or _one_sided(written, seen.outputs[0]):
            return True
    result = _value(seen.outputs[0], index, shape)
    inputs = [t for t in seen.inputs if is_numeric(t)]
    if depends(seen.outputs[0]):
        if seen.op in ("AddV2", "Add", "Sub") and len(inputs) == 2:
            return any(
                _no_op(x, c, index, shape, result)
                for x, c in (inputs, inputs[::-1])
                if not depends(c)
            )
        if seen.op == "Maximum" and len(inputs) == 2:
            return any(
                not depends(c) and _below(c, _value(c, index, shape)) and abs(result) < limits(c)[1]
                for c in inputs
            )
        return False
    # A constant that was worked out inside the program and vanished there.
    if seen.op in ("Cast", "Mul", "Square", "Pow") and inputs:
        values = [_value(t, index, shape) for t in inputs]
        return result == 0 and all(v is not None and v != 0 for v in values)
    if seen.op in ("AddV2", "Add", "Sub") and len(inputs) == 2:
        return any(_no_op(x, c, index, shape, result) for x, c in (inputs, inputs[::-1]))
    return False


def _below(constant: Any, value: Any) -> bool:
    return value is not None and bool(0 < abs(value) < limits(constant)[1])


def _no_op(
    x: Any, constant: Any, index: tuple[int, ...], shape: tuple[int, ...], result: Any
) -> bool:
    """Whether adding a scalar constant left a number as it was."""
    if constant.shape.rank:
        return False
    added, number = _value(constant, index, shape), _value(x, index, shape)
    if added is None or number is None or result is None:
        return False
    _, tiny, spacing = limits(constant)
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
        tree = ast.parse(segment.strip(), mode="eval")
    except SyntaxError:
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
    code, line, lasti = seen.place()
    if code is None:
        return ""
    positions = list(code.co_positions())
    first, last, start, end = positions[lasti // 2] if lasti // 2 < len(positions) else (None,) * 4
    if first is None or last is None or start is None or end is None:
        return linecache.getline(code.co_filename, line)
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    if not lines or not lines[0]:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode()


def _evaluate(node: ast.expr, names: dict[str, float]) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _evaluate(node.operand, names)
        return None if value is None else -value
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, names), _evaluate(node.right, names)
        if left is None or right is None:
            return None
        try:
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Sub):
                return left - right
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Div):
                return left / right
            if isinstance(node.op, ast.Pow) and abs(right) < 100:
                return float(left**right)
        except (ArithmeticError, TypeError, ValueError):
            return None
    return None
