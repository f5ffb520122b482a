"""Numbers that reach an operation by another way than its tensors: through a variable, or in and
out of a Python function."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lazy import tf
from . import _tensorflow
from . import mechanisms as m
from .observe import BACKWARD, FORWARD, TRANSFORM, Operation, Replay
from .values import Mask, Values, address, array, is_numeric

PYTHON = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
READS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")


class Links:
    """Ties reads of variables to writes in the same step, and Python functions to what ran inside
    them. `variable_at` maps where a variable's numbers lie in memory to its name."""

    def __init__(self, replay: Replay, values: Values) -> None:
        self.variable_at = {
            address(v.value()): name
            for name, v in replay.variables.items()
            if isinstance(v, tf.Variable) and is_numeric(v) and v.shape.num_elements()
        }
        self._operations, self._made = replay.observation.operations, replay.observation.made
        self._names = {
            id(v.handle): name for name, v in replay.variables.items() if hasattr(v, "handle")
        }
        self._written: dict[int, list[Any]] = {}
        self._written_at: dict[int, Any] = {}
        self._values = values
        self._link_writes()

    def _link_writes(self) -> None:
        last: dict[int, list[Any]] = {}
        for seen in self._operations:
            if not seen.inputs:
                continue
            handle = id(seen.inputs[0])
            if seen.op == "AssignVariableOp":
                last[handle] = [seen.inputs[1]]
                if not self._values.finite(seen.inputs[1]):
                    self._written_at[address(seen.inputs[1])] = seen.inputs[1]
            elif seen.op in ("AssignAddVariableOp", "AssignSubVariableOp"):
                last[handle] = [*last.get(handle, []), seen.inputs[1]]
            elif seen.op == "ReadVariableOp" and handle in last:
                self._written[seen.index] = list(last[handle])

    def written(self, seen: Operation) -> list[Any]:
        """What this step wrote to the variable that an operation reads."""
        return self._written.get(seen.index, [])

    def variable_read(self, seen: Operation) -> tuple[str, str] | None:
        """The variable that an operation reads, as (what a bad value there means, name)."""
        if seen.op not in READS or seen.inputs[0].dtype.name != "resource":
            return None
        handle = seen.inputs[0]
        if id(handle) in self._names:
            return m.PARAMETER, self._names[id(handle)]
        given = m.STATE if seen.stage == TRANSFORM else m.PARAMETER
        named = (v for v in _tensorflow.all_variables() if getattr(v, "_handle", None) is handle)
        return given, next(map(name_of, named), "a variable")

    def variable_holding(self, tensor: Any, user: Operation) -> tuple[str, str] | None:
        """The same for a tensor that no observed operation made: TensorFlow reads some variables
        unseen."""
        name = self.variable_at.get(address(tensor))
        if name is None and tensor.shape.rank:
            wanted = array(tensor)
            name = next((name_of(v) for v in _tensorflow.all_variables() if _same(v, wanted)), None)
        if name is None:
            return None
        return (m.STATE if user.stage == TRANSFORM else m.PARAMETER), name

    def outside(self, tensor: Any, user: Operation) -> Any:
        """The tensor whose numbers a tensor without a maker is a copy of, if there is one: written
        to a variable before, or handed to the Python function that `user` ran in."""
        written = self._written_at.get(address(tensor))
        if written is not None:
            return None if written is tensor else written
        wanted = array(tensor)
        for seen in self._operations[user.index :]:
            if seen.op in PYTHON:
                return next((t for t in seen.inputs if _same(t, wanted)), None)
        return None

    def listed(self, seen: Operation) -> list[tuple[Any, Mask]]:
        """The non-finite tensors that went into the tensor lists that an operation reads."""
        found: list[tuple[Any, Mask]] = []
        level, known = [t for t in seen.inputs if t.dtype.name == "variant"], set[int]()
        while level:
            maker = self._made.get(id(level.pop()))
            if maker is None or maker.index in known:
                continue
            known.add(maker.index)
            for tensor in maker.inputs:
                mask = self._values.bad(tensor)
                if mask is not None:
                    found.append((tensor, mask))
                elif tensor.dtype.name == "variant":
                    level.append(tensor)
        return found

    def first_run(self, seen: Operation) -> Operation | None:
        """The forward operation that one on the way back runs once more (`tf.recompute_grad`): the
        same place of the program gave the same numbers."""
        if seen.stage != BACKWARD or seen.forward is not None or seen.code is None:
            return None
        place = seen.op, seen.code, seen.lasti
        for before in self._operations:
            if before.stage != FORWARD:
                return None
            if (before.op, before.code, before.lasti) == place and all(
                _same(new, array(old))
                for new, old in zip(seen.outputs, before.outputs, strict=True)
                if is_numeric(old)
            ):
                return before
        return None

    def inside(self, seen: Operation, marked: dict[int, Mask]) -> list[tuple[Any, Mask]]:
        """The tensors computed inside a Python function that became its outputs."""
        if seen.op not in PYTHON:
            return []
        makers = [maker.index for t in seen.inputs if (maker := self._made.get(id(t))) is not None]
        start = max(makers, default=-1) + 1
        found: list[tuple[Any, Mask]] = []
        for k, mask in marked.items():
            wanted = array(seen.outputs[k])
            candidates = (
                t for c in reversed(self._operations[start : seen.index]) for t in c.outputs
            )
            match = next((t for t in candidates if _same(t, wanted)), None)
            if match is not None:
                found.append((match, mask))
        return found


def _same(tensor: Any, wanted: np.ndarray) -> bool:
    if not is_numeric(tensor) or tuple(tensor.shape) != wanted.shape:
        return False
    return bool(np.array_equal(array(tensor), wanted, equal_nan=True))


def name_of(variable: Any) -> str:
    """A variable's name without TensorFlow's output number."""
    return str(getattr(variable, "path", None) or getattr(variable, "name", "variable")).split(":")[
        0
    ]


def bad_writes(replay: Replay, values: Values) -> dict[str, list[Any]]:
    """Variables that this step itself left with more non-finite elements than before."""
    found: dict[str, list[Any]] = {}
    names = {id(v.handle): n for n, v in replay.variables.items() if hasattr(v, "handle")}
    for seen in replay.observation.operations:
        if not seen.op.startswith("Assign") or len(seen.inputs) < 2:
            continue
        handle, value = id(seen.inputs[0]), seen.inputs[1]
        mask = values.bad(value)
        variable, old = replay.observation.before.get(handle, (None, None))
        if mask is None or variable is None:
            continue
        before = values.bad(old)
        if before is None or mask.sum() > before.sum():
            found.setdefault(names.get(handle, name_of(variable)), []).append(value)
    return found
