"""Why some gradients stay finite where others do not."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .health import dense
from .observe import Operation
from .report import Health
from .walk import Walk

_SHAPES = frozenset({"OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"})


def why_spared(walk: Walk, health: dict[str, Health]) -> dict[str, str]:
    """What is true of the gradient of each variable where that is finite, to be read after “whose
    gradient”."""
    finite = {name: state for name, state in health.items() if state.finite}
    if not finite or not walk.causes:
        return {}
    family = _Family(walk)
    step = walk.replay
    gradients = step.gradients if step.transformed is None else step.transformed
    by_name = dict(zip(step.variables, gradients, strict=True))
    return {name: family.why(by_name.get(name), state.state) for name, state in finite.items()}


class _Family:
    """The operations before and after the causes, by what they hand on."""

    def __init__(self, walk: Walk) -> None:
        self._values = walk.values
        self._made = walk.replay.observation.made
        self._operations = walk.replay.observation.operations
        causes = [cause.operation for cause in walk.causes]
        self._descended = {id(cause.tensor) for cause in walk.causes}
        for operation in self._operations:
            if operation.op in _SHAPES:
                continue
            if any(id(tensor) in self._descended for tensor in operation.inputs):
                self._descended.update(map(id, operation.outputs))
        self._before = {o.index for o in self._back_from(t for c in causes for t in c.inputs)}

    def why(self, gradient: Any, state: str) -> str:
        if gradient is None or state == "unconnected":
            return "is none: the loss does not depend on it"
        tensor = dense(gradient)
        if id(tensor) in self._descended:
            last = next((o for o in self._back_from([tensor]) if self._sheds(o)), None)
            return f"loses the non-finite elements in {_named(last)}"
        branch = next((o for o in self._back_from([tensor]) if o.index in self._before), None)
        if branch is None:
            return "has nothing in common with what broke"
        return f"branches off before it, after {_named(branch)}"

    def _sheds(self, operation: Operation) -> bool:
        """Whether something non-finite from a cause ends here."""
        return any(
            id(tensor) in self._descended and not self._values.finite(tensor)
            for tensor in operation.inputs
        )

    def _back_from(self, tensors: Iterable[Any]) -> Iterable[Operation]:
        """The operations that these tensors descend from, the latest first."""
        queue: list[int] = []
        queued: set[int] = set()
        while True:
            for tensor in tensors:
                maker = self._made.get(id(tensor))
                if maker is not None and maker.index not in queued:
                    queued.add(maker.index)
                    heapq.heappush(queue, -maker.index)
            if not queue:
                return
            operation = self._operations[-heapq.heappop(queue)]
            yield operation
            tensors = operation.inputs


def _named(operation: Operation | None) -> str:
    if operation is None:
        return "an operation"
    file, line = operation.place()
    return f"`{operation.op}`" + (f" ({Path(file).name}:{line})" if file else "")
