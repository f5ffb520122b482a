"""One step, replayed with every operation observed."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from ..errors import BadInput
from ..lazy import tf
from . import _tensorflow
from .graphs import run_graph
from .lines import CUSTOM, GRADIENT, LIBRARY, OWN, TAPE, USER, Frames

FORWARD, BACKWARD, TRANSFORM = "forward", "backward", "transform"

# A constant that guards (x + ε, max(x, ε), min(x, 1 − ε)) or masks (mask · −1e9) is seen only after
# it was rounded, so for these the numbers that stood in the program are kept beside it.
_GUARDS = frozenset(
    {"AddV2", "Add", "Sub", "Maximum", "Minimum", "ClipByValue", "Select", "SelectV2", "Mul"}
)


class Operation:
    """One operation as it ran. Tensors are held by reference, never copied.

    `forward` is the operation that a backward one differentiates; `file` and `line` place it in the
    user's program (`code` and `lasti` down to the expression), `written` holds the numbers that
    stood around a guard.
    """

    __slots__ = (
        "attrs", "code", "file", "forward", "index", "inputs", "lasti", "line", "op", "outputs",
        "stage", "written",
    )  # fmt: skip

    def __init__(
        self, index: int, op: str, *, inputs: Sequence[Any], attrs: Any, outputs: Sequence[Any],
        stage: str,
    ) -> None:  # fmt: skip
        self.index, self.op, self.inputs, self.attrs = index, op, inputs, attrs
        self.outputs, self.stage = outputs, stage
        self.forward: Operation | None = None
        self.file: str | None = None
        self.code: CodeType | None = None
        self.line = self.lasti = 0
        self.written: dict[str, float] | None = None

    @property
    def phase(self) -> str:
        """Forward or backward; what is done to finished gradients counts as backward, and so
        does a gradient that the loss itself takes."""
        return FORWARD if self.stage == FORWARD and self.forward is None else BACKWARD

    def place(self) -> tuple[str | None, int]:
        """(file, line) of the user's own line: for a backward operation that of the
        forward operation it differentiates."""
        here: Operation = self
        while here.file is None and here.forward is not None:
            here = here.forward
        return here.file, here.line

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute of the operation by its TensorFlow name."""
        attrs = self.attrs or ()
        for key, value in zip(attrs[::2], attrs[1::2], strict=False):
            if key == name:
                return value
        return default


class Observation:
    """Collects the operations of one thread, in order, with where each stands."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.stage = FORWARD
        self.compiled: list[Any] = []
        self.inside: tuple[str, int] | None = None
        self.before: dict[int, tuple[Any, Any]] = {}
        self.made: dict[int, Operation] = {}
        self._frames = Frames()
        self._by_attributes: dict[int, Operation] = {}
        self._last: tuple[FrameType | None, Operation | None] = (None, None)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Observes this thread; on leaving, variables that were written hold their former values
        again and nothing stays registered."""
        try:
            with _tensorflow.observed(self):
                yield
        finally:
            self._last = (None, None)
            for variable, value in self.before.values():
                variable.assign(value)

    def saw(self, op: Any, inputs: Any, attrs: Any, outputs: Any) -> None:
        name = op.decode() if isinstance(op, bytes) else op
        # A TensorArray goes on using, and emptying, the very list of outputs.
        inputs, outputs = tuple(inputs), tuple(outputs)
        seen = Operation(
            len(self.operations),
            name,
            inputs=inputs,
            attrs=attrs,
            outputs=outputs,
            stage=self.stage,
        )
        self._place(seen)
        if name in _GUARDS and seen.forward is None:
            seen.written = self._numbers_around(seen)
        self._by_attributes[id(attrs)] = seen
        for tensor in outputs:
            self.made[id(tensor)] = seen
        self.operations.append(seen)

    def will_write(self, variable: Any) -> None:
        handle = id(variable.handle)
        if handle not in self.before:
            with _tensorflow.unobserved():
                self.before[handle] = (variable, tf.identity(variable.read_value()))

    def unrolled(self, function: Any, compiled: bool) -> None:
        if compiled:
            self.compiled.append(function)

    def run(self, graph: Any, inputs: Sequence[Any]) -> list[Any] | None:
        """Runs a function that comes as a graph; None if it cannot be taken apart."""
        return run_graph(self, graph, inputs)

    def _place(self, seen: Operation) -> None:
        frame: FrameType | None = sys._getframe(3)
        kinds, kind_of = self._frames.kinds, self._frames.kind
        while frame is not None:
            code = frame.f_code
            kind = kinds[code] if code in kinds else kind_of(code)
            if kind == LIBRARY:
                frame = frame.f_back
                continue
            if kind == USER:
                seen.code, seen.lasti = code, frame.f_lasti
                seen.file, seen.line = code.co_filename, frame.f_lineno
            elif kind in (GRADIENT, CUSTOM):
                if self._last[0] is not frame:
                    self._last = (frame, self.differentiated(frame, kind))
                seen.forward = self._last[1]
            elif kind == OWN and self.inside is not None:
                seen.file, seen.line = self.inside
            elif kind == TAPE:
                # The tape's own sum of gradients belongs where its last summand came from.
                makers = [self.made.get(id(t)) for t in seen.inputs]
                maker = next((m for m in reversed(makers) if m is not None), None)
                if maker is not None:
                    seen.forward = maker.forward or (maker if maker.stage == FORWARD else None)
                    seen.file, seen.line = maker.file, maker.line
            return

    def differentiated(self, frame: FrameType, kind: int) -> Operation | None:
        """The forward operation that a gradient function's frame is about."""
        local = frame.f_locals
        if kind == GRADIENT:
            found = self._by_attributes.get(id(local["attr_tuple"]))
            name = local["op_name"]
            name = name.decode() if isinstance(name, bytes) else name
            if found is not None and found.op == name:
                return found
            results = local["outputs"] or ()
        else:
            results = tf.nest.flatten(local["result"])
        return next((self.made[id(t)] for t in results if id(t) in self.made), None)

    def _numbers_around(self, seen: Operation) -> dict[str, float] | None:
        """The plain numbers in sight of a guard whose constant came out as 0, ±1 or ±Inf."""
        constants = [
            t
            for t in seen.inputs
            if id(t) not in self.made and hasattr(t, "_rank") and not t._rank()
        ]
        rounded = (math.inf,) if seen.op == "Mul" else (0.0, 1.0, math.inf)
        if not any(c.dtype.is_floating and abs(float(c.numpy())) in rounded for c in constants):
            return None
        numbers: dict[str, float] = {}
        frame: FrameType | None = sys._getframe(3)
        while frame is not None:
            user = self._frames.kind(frame.f_code) == USER
            names: dict[str, Any] = dict(frame.f_locals)
            if user:
                names |= {n: frame.f_globals.get(n) for n in frame.f_code.co_names}
            for name, value in names.items():
                if isinstance(value, float) or (isinstance(value, int) and value):
                    numbers[name if user else f"{frame.f_code.co_name}.{name}"] = float(value)
            if user:
                break
            frame = frame.f_back
        return numbers


@dataclass
class Replay:
    """What one observed step gave."""

    observation: Observation
    variables: dict[str, Any]
    loss: Any = None
    gradients: list[Any] = field(default_factory=list)
    transformed: list[Any] | None = None
    failure: Exception | None = None


def replay(
    loss_fn: Callable[[], Any],
    named: Callable[[Sequence[Any]], dict[str, Any]],
    variables: Sequence[Any] | None,
    transform: Callable[[list[Any]], Any] | None,
) -> Replay:
    """Runs loss, gradient and `transform` once, observed.

    `named` gives the variables their names once they are known. An error that TensorFlow raised
    while it ran an operation is kept as `failure`; any other error is the caller's own and passes.
    """
    seen = Observation()
    result = Replay(seen, {} if variables is None else named(variables))
    try:
        with seen.watching():
            with tf.GradientTape() as tape:
                for variable in result.variables.values():
                    tape.watch(variable)
                result.loss = _scalar(loss_fn())
            seen.stage = BACKWARD
            if variables is None:
                result.variables = named(tape.watched_variables())
            result.gradients = tape.gradient(result.loss, list(result.variables.values()))
            if transform is not None:
                seen.stage = TRANSFORM
                result.transformed = _gradients_of(transform(list(result.gradients)))
    except tf.errors.OpError as error:
        result.failure = error
    return result


def _scalar(loss: Any) -> Any:
    if not tf.is_tensor(loss) or not (loss.dtype.is_floating or loss.dtype.is_complex):
        raise BadInput(
            f"The loss function must return a floating-point tensor, not {type(loss).__name__}.",
            field="loss_fn",
        )
    return loss


def _gradients_of(transformed: Any) -> list[Any]:
    # `tf.clip_by_global_norm` returns (gradients, norm).
    pair = isinstance(transformed, tuple) and len(transformed) == 2
    return list(
        transformed[0] if pair and isinstance(transformed[0], (list, tuple)) else transformed
    )
