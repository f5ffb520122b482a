"""From what came out non-finite back to the operations that made it so.

A non-finite intermediate is a cause only if something that matters (the loss, a gradient, a
variable's new value) descends from it, element by element.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import mechanisms as m
from .flow import flow
from .links import Links
from .observe import BACKWARD, Operation, Replay
from .traps import traps
from .values import Mask, Values, is_numeric


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
        self._queue: list[int] = []
        self._queued: set[int] = set()
        self._links = Links(replay, values)
        self.variable_at = self._links.variable_at
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
        steps, tensor = [cause.operation], None
        through = cause.through
        if through is not None and self._leads_to(through, target, known=False):
            steps.append(through)
        elif any(cause.tensor is t for t in cause.operation.outputs):
            tensor = cause.tensor
        # What came in bad is followed from what its first user made of it.
        while True:
            found = self._tracked_of(steps[-1], tensor, target)
            tensor = None
            if found is None:
                return steps
            users = (u for u in found.users if u is not steps[-1])
            user = next((u for u in users if self._leads_to(u, target)), None)
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

    def _leads_to(self, seen: Operation, target: int, *, known: bool = True) -> bool:
        """Whether a target descends from what an operation made; where nothing bad of it was
        observed (XLA made it so), that is to be `known` or taken as given."""
        if known or any(id(t) in self.tracked for t in seen.outputs):
            return self._tracked_of(seen, None, target) is not None
        return True

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
        for k, mask, mechanism in traps(seen, marked, self._made):
            self._add(seen, k, mask, targets, given=mechanism)
            if mechanism != m.CLIP:
                # What spread by clipping is told beside its source, every other trap instead of it.
                marked[k] = marked[k] & ~mask
        marked = {k: mask for k, mask in marked.items() if mask.any()}
        if not marked:
            return
        found = flow(seen, marked, self.values)
        for i, mask in found.inputs.items():
            if mask.any():
                self._track(seen.inputs[i], mask, targets, seen)
        for k, mask in found.fresh.items():
            self._fresh(seen, k, mask, targets)

    def _from_outside(self, seen: Operation, marked: dict[int, Mask], targets: int) -> bool:
        """Whether the values came by another way than the operation's own tensors."""
        other = [
            (t, mask) for t in self._links.written(seen) if (mask := self.values.bad(t)) is not None
        ]
        other += self._links.inside(seen, marked) + self._links.listed(seen)
        for tensor, mask in other:
            self._track(tensor, mask, targets, seen)
        read = None if other else self._links.variable_read(seen)
        if read is not None:
            for k, mask in marked.items():
                self.causes.append(Cause(seen, seen.outputs[k], mask, targets, *read))
        return bool(other) or read is not None

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
        again = self._links.first_run(seen)
        if again is not None:
            seen, through = again, through or seen
        for cause in self.causes:
            if cause.operation is seen and cause.tensor is seen.outputs[k] and cause.given == given:
                cause.mask = cause.mask | mask
                cause.targets |= targets
                return
        self.causes.append(Cause(seen, seen.outputs[k], mask, targets, given, through=through))

    def _at_leaf(self, entry: _Tracked, user: Operation | None, targets: int) -> None:
        if user is None:  # the target itself was given: nothing was computed
            return
        outer = self._links.outside(entry.tensor, user)
        if outer is not None:
            self._track(outer, entry.mask, targets, user)
            return
        for cause in self.causes:
            if cause.tensor is entry.tensor:
                cause.targets |= targets
                cause.mask = entry.mask
                if user.index < cause.operation.index:
                    cause.operation = user
                return
        held = self._links.variable_holding(entry.tensor, user) or (m.INPUT, None)
        self.causes.append(Cause(user, entry.tensor, entry.mask, targets, *held))


def ancestors(
    start: Any, made: dict[int, Operation], through: Container[str], depth: int
) -> Iterator[Operation]:
    """The operations that a tensor was computed by, nearest first, each once, gradients that the
    tape worked out left out; goes on behind an operation only if `through` lists it."""
    level, known = [start], set()
    for _ in range(depth):
        following: list[Any] = []
        for tensor in level:
            seen = made.get(id(tensor))
            if seen is None or seen.index in known:
                continue
            if seen.stage == BACKWARD and seen.code is None:
                continue
            known.add(seen.index)
            yield seen
            if seen.op in through:
                following += list(seen.inputs)
        level = following
