"""Functions that come as graphs only (concrete or restored ones), run operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..lazy import tf
from . import _tensorflow
from .lines import caller, innermost

_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "PartitionedCall": ("f",),
    "While": ("cond", "body"),
    "If": ("then_branch", "else_branch"),
}


class Placed(Protocol):
    """Is told on which line the operation that runs next was built."""

    inside: tuple[str, int] | None

    def unrolled(self, function: Any, compiled: bool) -> None: ...


def run_graph(placed: Placed, graph: Any, inputs: Sequence[Any]) -> list[Any] | None:
    """The outputs of `graph`, each of its operations run eagerly; None when it holds something that
    has no eager form (a custom gradient, whose backward part is a graph too)."""
    if not _has_eager_form(graph, set()):
        return None
    before, placed.inside = placed.inside, placed.inside or caller()
    try:
        return _run(placed, graph, inputs)
    finally:
        placed.inside = before


def _has_eager_form(graph: Any, known: set[str]) -> bool:
    for op in graph.get_operations():
        if "_gradient_op_type" in op.node_def.attr:
            return False
        if op.type in ("Placeholder", "Const", "NoOp"):
            continue
        if op.type.removeprefix("Stateless") == "Case":
            return False
        names = list(_branches(op).values())
        if not names and not hasattr(tf.raw_ops, op.type):
            return False
        for name in names:
            if name not in known:
                known.add(name)
                part = _tensorflow.graph_of(graph, name)
                if part is None or not _has_eager_form(part, known):
                    return False
    return True


def _branches(op: Any) -> dict[str, str]:
    """The functions that a control-flow operation runs, by attribute."""
    keys = _FUNCTIONS.get(op.type.removeprefix("Stateless").removeprefix("Stateful"), ())
    return {key: op.get_attr(key).name for key in keys}


def _run(placed: Placed, graph: Any, inputs: Sequence[Any]) -> list[Any]:
    values = dict(zip((t.name for t in graph.inputs), inputs, strict=True))
    outer = placed.inside
    waiting = [op for op in graph.get_operations() if op.type not in ("Placeholder", "NoOp")]
    before = len(waiting) + 1
    while len(waiting) < before:
        # Not in order once the gradient of a loop has given the loop more inputs.
        before, late = len(waiting), list[Any]()
        for op in waiting:
            if any(t.name not in values for t in op.inputs) or _follows(op, late):
                late.append(op)
                continue
            placed.inside = innermost(op.traceback or ()) or outer
            made = _outputs(placed, graph, op, [values[t.name] for t in op.inputs])
            # A function whose gradient was asked for returns more than its callers take.
            values |= zip((t.name for t in op.outputs), made, strict=False)
        waiting = late
    placed.inside = outer
    return [values[t.name] for t in graph.outputs]


def _follows(op: Any, late: list[Any]) -> bool:
    """Whether an operation must wait for one that could not run yet."""
    return bool(late) and any(before in late for before in op.control_inputs)


def _outputs(placed: Placed, graph: Any, op: Any, inputs: list[Any]) -> list[Any]:
    if op.type == "Const":
        return [tf.constant(tf.make_ndarray(op.get_attr("value")))]
    parts = {k: _tensorflow.graph_of(graph, name) for k, name in _branches(op).items()}
    if "f" in parts:
        if _must_compile(op):
            placed.unrolled(op, True)
        return _run(placed, parts["f"], inputs)
    if "body" in parts:
        while bool(_run(placed, parts["cond"], inputs)[0]):
            inputs = _run(placed, parts["body"], inputs)
        return inputs
    if parts:
        return _run(placed, parts["then_branch" if bool(inputs[0]) else "else_branch"], inputs[1:])
    return _tensorflow.run_recorded(op.type, inputs, _attributes(op), len(op.outputs))


def _must_compile(op: Any) -> bool:
    return "_XlaMustCompile" in op.node_def.attr and bool(op.get_attr("_XlaMustCompile"))


def _attributes(op: Any) -> tuple[Any, ...]:
    """An operation's attributes as eager execution takes them: (name, value, name, value, …)."""
    flat: list[Any] = []
    for attribute in op.op_def.attr:
        flat += [attribute.name, _plain(op.get_attr(attribute.name))]
    return tuple(flat)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, tf.DType):
        return value.as_datatype_enum
    if type(value).__name__ == "TensorShapeProto":
        shape = tf.TensorShape(value)
        return None if shape.rank is None else shape.as_list()
    return value
