"""Everything here that leans on TensorFlow's insides (checked with 2.21), in one place.

Observation rests on three facts:

- An operation callback belongs to the thread that adds it, and it is handed the very tensor
  objects that the program passes on, so that object identity links operations.
- The tuple of attributes handed to the callback is the same object that the tape later hands to the
  gradient function, which joins every backward operation to the forward one without guessing.
- A `tf.function` called eagerly runs operation by operation, loops included.

Two things are shared by all threads and so are counted under a lock: the slow path of eager
execution must look for callbacks, and calls that the observer has to see (a `tf.function`, a write
to a variable) go through a wrapper that only acts in a thread that is observing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any, Protocol

_lock = threading.Lock()
_observing = threading.local()
_observers = 0
_originals: list[tuple[Any, str, Any]] = []

_WRITES = (
    "assign",
    "assign_add",
    "assign_sub",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
    "scatter_update",
    "scatter_nd_add",
    "scatter_nd_sub",
    "scatter_nd_update",
    "batch_scatter_update",
)


class Observer(Protocol):
    """What an observing thread is told."""

    def saw(self, op: Any, inputs: Any, attrs: Any, outputs: Any) -> None: ...
    def will_write(self, variable: Any) -> None: ...
    def unrolled(self, function: Any, compiled: bool) -> None: ...
    def run(self, graph: Any, inputs: Sequence[Any]) -> list[Any] | None: ...


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Tells `observer` of every eager operation that this thread runs, and of nothing else."""
    from tensorflow.python.autograph.core import ag_ctx  # noqa: PLC0415
    from tensorflow.python.eager import context  # noqa: PLC0415
    from tensorflow.python.util import traceback_utils  # noqa: PLC0415

    here = context.context()

    def callback(op: Any, inputs: Any, attrs: Any, outputs: Any, *_: Any, **named: Any) -> None:
        if named.get("graph") is None:  # not while a graph is being built
            observer.saw(op, inputs, attrs, outputs)

    previous = getattr(_observing, "observer", None)
    filtering = traceback_utils.is_traceback_filtering_enabled()
    _open()
    try:
        _observing.observer = observer
        traceback_utils.disable_traceback_filtering()
        others = list(here.op_callbacks)
        for other in others:  # such as `enable_check_numerics`, which would stop at the first NaN
            here.remove_op_callback(other)
        here.add_op_callback(callback)
        try:
            # Run eagerly, loops need no rewriting, and the frames are the user's own.
            with ag_ctx.ControlStatusCtx(ag_ctx.Status.DISABLED):
                yield
        finally:
            here.remove_op_callback(callback)
            for other in others:
                here.add_op_callback(other)
    finally:
        _observing.observer = previous
        if filtering:
            traceback_utils.enable_traceback_filtering()
        _close()


@contextmanager
def unobserved() -> Iterator[None]:
    """Lets this thread run operations of the observer's own, unseen."""
    from tensorflow.python.eager import context  # noqa: PLC0415

    here = context.context()
    observer, callbacks = getattr(_observing, "observer", None), list(here.op_callbacks)
    _observing.observer = None
    for callback in callbacks:
        here.remove_op_callback(callback)
    try:
        yield
    finally:
        for callback in callbacks:
            here.add_op_callback(callback)
        _observing.observer = observer


def _open() -> None:
    global _observers  # noqa: PLW0603
    from tensorflow.python.eager import backprop, execute  # noqa: PLC0415
    from tensorflow.python.eager.polymorphic_function import (  # noqa: PLC0415
        concrete_function,
        polymorphic_function,
    )
    from tensorflow.python.ops import resource_variable_ops  # noqa: PLC0415
    from tensorflow.python.ops.parallel_for import control_flow_ops  # noqa: PLC0415

    with _lock:
        _observers += 1
        if _observers > 1:
            return
        _replace(execute, "execute", execute.execute_with_callbacks)
        function = polymorphic_function.Function
        _replace(function, "__call__", _run_eagerly(function.__call__))
        concrete = concrete_function.ConcreteFunction
        _replace(concrete, "_call_flat", _run_graph(concrete._call_flat))
        _replace(control_flow_ops, "_pfor_impl", _loop_eagerly(control_flow_ops._pfor_impl))
        tape = backprop.GradientTape
        _replace(tape, "_push_tape", _reusable(tape._push_tape))
        for variable in (
            resource_variable_ops.BaseResourceVariable,
            resource_variable_ops.ResourceVariable,
        ):
            for name in _WRITES:
                if name in vars(variable):
                    _replace(variable, name, _announce_write(vars(variable)[name]))


def _close() -> None:
    global _observers  # noqa: PLW0603
    with _lock:
        _observers -= 1
        while not _observers and _originals:
            owner, name, original = _originals.pop()
            setattr(owner, name, original)


def _replace(owner: Any, name: str, value: Any) -> None:
    _originals.append((owner, name, vars(owner)[name]))
    setattr(owner, name, value)


def _run_eagerly(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        observer = getattr(_observing, "observer", None)
        if observer is None or not _eager():
            return original(self, *args, **kwargs)
        observer.unrolled(self, bool(self._jit_compile))
        return self._python_function(*args, **kwargs)

    return call


def _run_graph(original: Callable[..., Any]) -> Callable[..., Any]:
    """A concrete or restored function has no Python left: its graph is run instead."""
    from tensorflow.python.ops import resource_variable_ops  # noqa: PLC0415

    def call(self: Any, tensor_inputs: Any, captured_inputs: Any) -> Any:
        observer = getattr(_observing, "observer", None)
        if observer is None or not _eager():
            return original(self, tensor_inputs, captured_inputs)
        for variable in self.graph.variables:
            resource_variable_ops.variable_accessed(variable)
        if "__backward_" in self.graph.name:  # of a function that could not be taken apart
            return original(self, tensor_inputs, captured_inputs)
        observer.unrolled(self, bool(self.function_def.attr["_XlaMustCompile"].b))
        outputs = observer.run(self.graph, [*tensor_inputs, *captured_inputs])
        if outputs is None:
            return original(self, tensor_inputs, captured_inputs)
        return self.function_type.pack_output(outputs)

    return call


def _loop_eagerly(original: Callable[..., Any]) -> Callable[..., Any]:
    """`tf.vectorized_map` and Jacobians, one element at a time."""
    import tensorflow as tf  # noqa: PLC0415
    from tensorflow.python.ops.parallel_for import control_flow_ops  # noqa: PLC0415

    def loop(loop_fn: Any, iters: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(_observing, "observer", None) is None or not _eager():
            return original(loop_fn, iters, *args, **kwargs)
        if control_flow_ops._loop_fn_has_config(loop_fn):
            with unobserved():
                return tf.function(lambda: original(loop_fn, iters, *args, **kwargs))()
        with _asked_again(loop_fn):
            results = [loop_fn(tf.constant(i)) for i in range(int(iters))]
        return tf.nest.map_structure(
            lambda *parts: None if parts[0] is None else tf.stack(parts), *results
        )

    return loop


@contextmanager
def _asked_again(loop_fn: Any) -> Iterator[None]:
    """Lets the tapes that a loop's body asks for gradients answer each time, as a Jacobian needs
    for each of its rows."""
    from tensorflow.python.eager import backprop  # noqa: PLC0415

    cells = [cell.cell_contents for cell in getattr(loop_fn, "__closure__", None) or ()]
    tapes = [c for c in cells if isinstance(c, backprop.GradientTape) and not c._persistent]
    for tape in tapes:
        tape._persistent = True
    try:
        yield
    finally:
        for tape in tapes:
            tape._persistent, tape._tape = False, None


def _reusable(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps what a tape recorded beyond its first gradient: only the loop of a Jacobian tells that
    it will be asked again, and too late."""
    from tensorflow.python.eager import record  # noqa: PLC0415

    def push(self: Any) -> None:
        nested = record.could_possibly_record()  # the outermost is the replay's own
        if getattr(_observing, "observer", None) is None or not _eager() or not nested:
            return original(self)
        once, self._persistent = not self._persistent, True
        try:
            return original(self)
        finally:
            self._persistent = not once

    return push


def _announce_write(original: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        observer = getattr(_observing, "observer", None)
        if observer is not None and _eager():
            observer.will_write(self)
        return original(self, *args, **kwargs)

    return write


def _eager() -> bool:
    from tensorflow.python.eager import context  # noqa: PLC0415

    return bool(context.executing_eagerly())


def gradient_code() -> CodeType:
    """The code whose frame holds, as `attr_tuple`, the attributes of the operation it
    differentiates."""
    from tensorflow.python.eager import backprop  # noqa: PLC0415

    code: CodeType = backprop._gradient_function.__code__
    return code


def custom_gradient_code() -> CodeType | None:
    """The code whose frame holds, as `result`, what the custom gradient's forward part returned."""
    from tensorflow.python.ops import custom_gradient  # noqa: PLC0415

    constants = custom_gradient._eager_mode_decorator.__code__.co_consts
    return next(
        (c for c in constants if isinstance(c, CodeType) and c.co_name == "actual_grad_fn"), None
    )


def tape_codes() -> list[CodeType]:
    """Code of the tape itself: below it stands the line that asked for the gradient, which is never
    the line of an operation."""
    from tensorflow.python.eager import backprop, imperative_grad  # noqa: PLC0415

    return [
        backprop._aggregate_grads.__code__,
        imperative_grad.imperative_grad.__code__,
        backprop.GradientTape.gradient.__code__,
    ]


def run_again(op: str, inputs: Sequence[Any], attrs: Any, outputs: int) -> list[Any]:
    """Runs one operation as it was observed, on other inputs."""
    from tensorflow.python.eager import context, execute  # noqa: PLC0415

    pairs = zip((attrs or ())[::2], (attrs or ())[1::2], strict=False)
    attributes = tuple(part for pair in pairs if pair[1] is not None for part in pair)
    here = context.context()
    return list(execute.quick_execute(op, outputs, list(inputs), attributes, here, None))


def run_recorded(op: str, inputs: Sequence[Any], attrs: Any, outputs: int) -> list[Any]:
    """Runs one operation as the program would have: observed, and recorded by its tapes."""
    from tensorflow.python.eager import context, execute  # noqa: PLC0415

    inputs = list(inputs)
    results = list(execute.execute(op, outputs, inputs, attrs, context.context()))
    execute.record_gradient(op, inputs, attrs, results)
    return results


def graph_of(graph: Any, name: str) -> Any:
    """The graph of a function that an operation of `graph` names (a branch, a loop's body); None
    when it calls functions that are known to `graph` alone."""
    from tensorflow.python.eager import context  # noqa: PLC0415
    from tensorflow.python.framework import function_def_to_graph  # noqa: PLC0415

    known = getattr(graph._get_function(name), "graph", None)
    if known is not None:
        return known
    definition = context.get_function_def(name)
    try:
        return function_def_to_graph.function_def_to_graph(definition)
    except RuntimeError:
        return None


def all_variables() -> list[Any]:
    """Every variable that is alive."""
    from tensorflow.python.ops import resource_variable_ops  # noqa: PLC0415

    base, kinds = resource_variable_ops.BaseResourceVariable, dict[type, bool]()
    found = []
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in kinds:
            kinds[kind] = base in kind.__mro__
        if kinds[kind]:
            found.append(thing)
    return found
