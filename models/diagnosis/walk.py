"""From what came out non-finite back to the operations that made it so.

A non-finite intermediate is a cause only if something that matters (the loss, a gradient, a
variable's new value) descends from it, element by element.
"""

from __future__ import annotations

import gc
import heapq
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..lazy import tf
from .flow import ROWWISE, flow
from .observe import BACKWARD, FORWARD, TRANSFORM, Operation, Replay
from .values import Mask, Values, address, array, is_numeric

_PYTHON = ("EagerPyFunc", "PyFunc", "PyFuncStateless")


@dataclass
class Cause:
    """An operation at whose marked elements finite numbers became non-finite.

    `given` says why when it is not the operation's own arithmetic: the value came in like this
    ("bad-input", "bad-parameter", "bad-optimizer-state"), or a known trap closed here
    ("all-masked-softmax", "clip-overflow"). `tensor` is where the marked elements stand.
    """

    operation: Operation
    tensor: Any
    mask: Mask
    targets: int
    given: str | None = None
    name: str | None = None
    through: Operation | None = None


@dataclass
class _Tracked:
    tensor: Any
    mask: Mask
    targets: int
    users: list[Operation] = field(default_factory=list)


class Walk:
    """Walks back from `targets` (name → tensors) once; `causes` are what it found."""

    def __init__(self, replay: Replay, values: Values, targets: dict[str, list[Any]]) -> None:
        self.replay, self.values = replay, values
        self.names = list(targets)
        self.causes: list[Cause] = []
        self.tracked: dict[int, _Tracked] = {}
        self._made = replay.observation.made
        self.variable_at = {
            address(v.value()): name
            for name, v in replay.variables.items()
            if isinstance(v, tf.Variable) and is_numeric(v) and v.shape.num_elements()
        }
        self._queue: list[int] = []
        self._queued: set[int] = set()
        self._sources = self._variable_sources()
        self._link_writes()
        for bit, tensors in enumerate(targets.values()):
            for tensor in tensors:
                mask = values.bad(tensor)
                if mask is not None:
                    self._track(tensor, mask, 1 << bit, None)
        while self._queue:
            self._step(replay.observation.operations[-heapq.heappop(self._queue)])
        self.causes.sort(key=lambda cause: cause.operation.index)

    def reached(self, cause: Cause) -> list[str]:
        """The names of the targets that descend from a cause."""
        return [name for bit, name in enumerate(self.names) if cause.targets >> bit & 1]

    def path(self, cause: Cause, target: int) -> list[Operation]:
        """The operations from a cause to one target (by number), in order."""
        steps = [cause.operation]
        if cause.through is not None:
            steps.append(cause.through)
        tensor = cause.tensor if cause.through is None else None
        while True:
            found = self._tracked_of(steps[-1], tensor, target)
            tensor = None
            if found is None:
                return steps
            user = next((u for u in found.users if u is not steps[-1]), None)
            if user is None:
                return steps
            steps.append(user)

    def untracked(self) -> Iterator[tuple[Operation, Any, Mask]]:
        """Operations that made something non-finite that nothing important descends from."""
        blamed = {id(cause.tensor) for cause in self.causes}
        for seen in self.replay.observation.operations:
            for tensor in seen.outputs:
                mask = self.values.bad(tensor)
                if mask is None or id(tensor) in self.tracked or id(tensor) in blamed:
                    continue
                if all(self.values.finite(t) for t in seen.inputs):
                    yield seen, tensor, mask

    def loose_constants(self) -> Iterator[tuple[Operation, Any, Mask]]:
        """Non-finite tensors that no operation made, with the operation that first took them."""
        known: set[int] = set()
        for seen in self.replay.observation.operations:
            for tensor in seen.inputs:
                if id(tensor) in self._made or id(tensor) in known or not is_numeric(tensor):
                    continue
                known.add(id(tensor))
                mask = self.values.bad(tensor)
                if mask is not None:
                    yield seen, tensor, mask

    def _tracked_of(self, seen: Operation, tensor: Any, target: int) -> _Tracked | None:
        outputs = seen.outputs if tensor is None else (tensor, *seen.outputs)
        for output in outputs:
            found = self.tracked.get(id(output))
            if found is not None and found.targets >> target & 1:
                return found
        return None

    def _variable_sources(self) -> dict[int, tuple[str, str]]:
        """Variable handle → (name, what it means when its value was bad before this step)."""
        sources: dict[int, tuple[str, str]] = {}
        for name, variable in self.replay.variables.items():
            if hasattr(variable, "handle"):
                sources[id(variable.handle)] = (name, "bad-parameter")
        return sources

    def _link_writes(self) -> None:
        """A variable read after a write in this step hands on what was written."""
        self._written: dict[int, list[Any]] = {}
        self._written_at: dict[int, Any] = {}
        last: dict[int, list[Any]] = {}
        for seen in self.replay.observation.operations:
            if not seen.inputs or getattr(seen.inputs[0], "dtype", None) is None:
                continue
            handle = id(seen.inputs[0])
            if seen.op == "AssignVariableOp":
                last[handle] = [seen.inputs[1]]
                if self.values.bad(seen.inputs[1]) is not None:
                    self._written_at[address(seen.inputs[1])] = seen.inputs[1]
            elif seen.op in ("AssignAddVariableOp", "AssignSubVariableOp"):
                last[handle] = [*last.get(handle, []), seen.inputs[1]]
            elif seen.op == "ReadVariableOp" and handle in last:
                self._written[seen.index] = list(last[handle])

    def _track(self, tensor: Any, mask: Mask, targets: int, user: Operation | None) -> None:
        entry = self.tracked.get(id(tensor))
        if entry is None:
            entry = self.tracked[id(tensor)] = _Tracked(tensor, mask, targets)
        else:
            entry.mask = entry.mask | mask
            entry.targets |= targets
        if user is not None:
            entry.users.append(user)
        maker = self._made.get(id(tensor))
        if maker is None:
            self._at_leaf(entry, user, targets)
        elif maker.index not in self._queued:
            self._queued.add(maker.index)
            heapq.heappush(self._queue, -maker.index)

    def _step(self, seen: Operation) -> None:
        marked = {
            k: entry.mask
            for k, tensor in enumerate(seen.outputs)
            if (entry := self.tracked.get(id(tensor))) is not None
        }
        targets = 0
        for k in marked:
            targets |= self.tracked[id(seen.outputs[k])].targets
        if self._from_outside(seen, marked, targets):
            return
        marked = self._closed_trap(seen, marked, targets)
        if not marked:
            return
        found = flow(seen, marked, self.values)
        for i, mask in found.inputs.items():
            if mask.any():
                self._track(seen.inputs[i], mask, targets, seen)
        for k, mask in found.fresh.items():
            self._fresh(seen, k, mask, targets)

    def _from_outside(self, seen: Operation, marked: dict[int, Mask], targets: int) -> bool:
        """Values that no operation computed from its tensors: a variable's, or those of a Python
        function that ran inside."""
        if seen.index in self._written:
            for tensor in self._written[seen.index]:
                mask = self.values.bad(tensor)
                if mask is not None:
                    self._track(tensor, mask, targets, seen)
            if any(not self.values.finite(t) for t in self._written[seen.index]):
                return True
        first = seen.inputs[0] if seen.inputs else None
        dtype = getattr(getattr(first, "dtype", None), "name", "")
        if dtype == "resource" and seen.op in (
            "ReadVariableOp",
            "ResourceGather",
            "ResourceGatherNd",
        ):
            elsewhere = "bad-optimizer-state" if seen.stage == TRANSFORM else "bad-parameter"
            known = self._sources.get(id(first))
            name, given = known or (_variable_name(first), elsewhere)
            for k, mask in marked.items():
                self.causes.append(Cause(seen, seen.outputs[k], mask, targets, given, name))
            return True
        if seen.op in _PYTHON:
            inner = self._inside(seen, marked)
            for tensor, mask in inner:
                self._track(tensor, mask, targets, seen)
            return bool(inner)
        return False

    def _inside(self, seen: Operation, marked: dict[int, Mask]) -> list[tuple[Any, Mask]]:
        """The tensors computed inside a Python function that became its outputs."""
        operations = self.replay.observation.operations
        makers = [m.index for t in seen.inputs if (m := self._made.get(id(t))) is not None]
        start = max(makers, default=-1)
        inner: list[tuple[Any, Mask]] = []
        for k, mask in marked.items():
            wanted = array(seen.outputs[k])
            for candidate in reversed(operations[start + 1 : seen.index]):
                match = next((t for t in candidate.outputs if _same(t, wanted)), None)
                if match is not None:
                    inner.append((match, mask))
                    break
        return inner

    def _closed_trap(
        self, seen: Operation, marked: dict[int, Mask], targets: int
    ) -> dict[int, Mask]:
        """Operations that turn deliberate infinities into NaN: they are the cause, not what fed
        them. Returns the elements that remain to be explained."""
        if seen.op in ROWWISE and is_numeric(seen.inputs[0]):
            return self._masked_rows(seen, marked, targets)
        if seen.op == "Sub" and len(seen.inputs) == 2:
            left, right = (array(t) for t in seen.inputs)
            both = np.isneginf(left) & np.isneginf(right) if not np.iscomplexobj(left) else None
            if both is not None and both.any() and self._is_maximum(seen.inputs[1]):
                trapped = np.broadcast_to(both, marked[0].shape) & marked[0]
                if trapped.any():
                    self._add(seen, 0, trapped, targets, given="all-masked-softmax")
                    rest = marked[0] & ~trapped
                    return {0: rest} if rest.any() else {}
            if seen.stage == TRANSFORM and np.all(np.isinf(left) & np.isinf(right)):
                self._add(seen, 0, marked[0], targets, given="clip-overflow")
        return marked

    def _masked_rows(
        self, seen: Operation, marked: dict[int, Mask], targets: int
    ) -> dict[int, Mask]:
        rows = np.asarray(np.isneginf(array(seen.inputs[0])).all(axis=-1))
        rest: dict[int, Mask] = {}
        for k, mask in marked.items():
            wide = rows[..., None] if mask.ndim > rows.ndim else rows
            trapped = mask & wide
            if trapped.any():
                self._add(seen, k, trapped, targets, given="all-masked-softmax")
            left = mask & ~wide
            if left.any() and seen.op.endswith("WithLogits"):
                left = self._impossible_labels(seen, k, left, targets)
            if left.any():
                rest[k] = left
        return rest

    def _impossible_labels(self, seen: Operation, k: int, mask: Mask, targets: int) -> Mask:
        """Cross-entropy of a label whose logit is −Inf is log 0."""
        logits = array(seen.inputs[0])
        clean = np.isneginf(logits).any(axis=-1) & ~(np.isnan(logits) | np.isposinf(logits)).any(-1)
        trapped = mask & (clean[..., None] if mask.ndim > clean.ndim else clean)
        if trapped.any():
            self._add(seen, k, trapped, targets, given="log-of-zero")
        return mask & ~trapped

    def _is_maximum(self, tensor: Any) -> bool:
        maker = self._made.get(id(tensor))
        for _ in range(4):
            if maker is None or maker.op in ("Max", "Maximum"):
                return maker is not None
            maker = self._made.get(id(maker.inputs[0])) if maker.inputs else None
        return False

    def _fresh(self, seen: Operation, k: int, mask: Mask, targets: int) -> None:
        """Credits a backward operation's own doing to the forward one it differentiates where that
        was already non-finite by its own doing: 1/0 came before the derivative of 1/0."""
        before = seen.forward
        if seen.phase == BACKWARD and before is not None:
            for j, tensor in enumerate(before.outputs):
                bad = self.values.bad(tensor)
                own = None if bad is None else flow(before, {j: bad}, self.values).fresh.get(j)
                if own is None:
                    continue
                shared = own & mask if own.shape == mask.shape else own
                if shared.any():
                    self._add(before, j, shared, targets, through=seen)
                    if own.shape != mask.shape or not (mask & ~own).any():
                        return
                    mask = mask & ~own
        self._add(seen, k, mask, targets)

    def _add(
        self, seen: Operation, k: int, mask: Mask, targets: int, *, given: str | None = None,
        through: Operation | None = None,
    ) -> None:  # fmt: skip
        for cause in self.causes:
            if cause.operation is seen and cause.tensor is seen.outputs[k] and cause.given == given:
                cause.mask = cause.mask | mask
                cause.targets |= targets
                return
        self.causes.append(Cause(seen, seen.outputs[k], mask, targets, given, through=through))

    def _at_leaf(self, entry: _Tracked, user: Operation | None, targets: int) -> None:
        if user is None:
            return
        written = self._written_at.get(address(entry.tensor))
        outer = self._handed_in(entry.tensor, user) if written is None else written
        if outer is not None and outer is not entry.tensor:
            self._track(outer, entry.mask, targets, user)
            return
        for cause in self.causes:
            if cause.tensor is entry.tensor:
                cause.targets |= targets
                cause.mask = entry.mask
                if user.index < cause.operation.index:
                    cause.operation = user
                return
        given, name = "bad-input", self._variable_holding(entry.tensor)
        if name is not None:
            given = "bad-optimizer-state" if user.stage == TRANSFORM else "bad-parameter"
        self.causes.append(Cause(user, entry.tensor, entry.mask, targets, given, name))

    def _variable_holding(self, tensor: Any) -> str | None:
        """The variable that a tensor was read from: TensorFlow reads some unseen."""
        known = self.variable_at.get(address(tensor))
        wanted = array(tensor)
        if known is not None or not wanted.shape:
            return known
        for thing in gc.get_objects():
            if isinstance(thing, tf.Variable) and hasattr(thing, "handle") and _same(thing, wanted):
                return name_of(thing)
        return None

    def _handed_in(self, tensor: Any, user: Operation) -> Any:
        """The same numbers outside, when a Python function was handed a copy of them."""
        wanted = array(tensor)
        for seen in self.replay.observation.operations[user.index :]:
            if seen.op in _PYTHON:
                return next((t for t in seen.inputs if _same(t, wanted)), None)
        return None


def _same(tensor: Any, wanted: np.ndarray) -> bool:
    if not is_numeric(tensor) or tuple(tensor.shape) != wanted.shape:
        return False
    return bool(np.array_equal(array(tensor), wanted, equal_nan=True))


def _variable_name(handle: Any) -> str:
    """The name of the variable behind a handle that the caller did not list."""
    for thing in gc.get_objects():
        if isinstance(thing, tf.Variable) and getattr(thing, "_handle", None) is handle:
            return name_of(thing)
    return "a variable"


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


def name_of(variable: Any) -> str:
    """A variable's name without TensorFlow's output number."""
    return str(getattr(variable, "path", None) or getattr(variable, "name", "variable")).split(":")[
        0
    ]


def ancestors(
    start: Any, made: dict[int, Operation], through: Container[str], depth: int
) -> Iterator[Operation]:
    """The forward operations that a tensor was computed by, nearest first, each once; goes on
    behind an operation only if `through` lists it."""
    level, known = [start], set()
    for _ in range(depth):
        following: list[Any] = []
        for tensor in level:
            seen = made.get(id(tensor))
            if seen is None or seen.index in known or seen.stage != FORWARD:
                continue
            known.add(seen.index)
            yield seen
            if seen.op in through:
                following += list(seen.inputs)
        level = following
