"""Causes judged: mechanism, circumstances, numbers, line, reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import mechanisms as m
from .circumstances import LOSS_SCALE, STEP
from .growth import Growth, growth
from .guards import overflowed_constant
from .judge import Judge
from .lines import source
from .observe import BACKWARD, TRANSFORM, Operation
from .operands import first, operands
from .report import Health, Origin, Step
from .scaling import Scale
from .values import Values, array, at, is_numeric, largest
from .walk import Cause, Walk

_OVERFLOWS = frozenset({m.PRODUCT, m.EXPLOSION, m.CAST, m.EXP})
_MOST_BENIGN = 20
_MOST_STEPS = 400
_MOST_PLACES = 20


class Findings:
    """Turns the causes of one walk into origins."""

    def __init__(self, walk: Walk, fallback: tuple[str, int] | None) -> None:
        self.walk, self.values = walk, walk.values
        self.judge = Judge(walk)
        self._fallback = fallback

    def origins(
        self,
        scale: Scale | None,
        history: Sequence[Mapping[str, float]] | None,
        health: dict[str, Health],
    ) -> list[Origin]:
        """Every cause that something important descends from, strongest first."""
        origins = self.told(self.walk.causes)
        swung = _swung(history) if history else self._steep(health)
        extra = []
        for origin in origins:
            more = list(origin.circumstances)
            if scale is not None and origin.mechanism in _OVERFLOWS:
                more.append(LOSS_SCALE)
            if swung and origin.mechanism in (*_OVERFLOWS, m.PARAMETER):
                more.append(STEP)
            extra.append(replace(origin, circumstances=tuple(more)))
        return extra

    def told(self, causes: Iterable[Cause]) -> list[Origin]:
        """Causes as origins; the same operation on the same line is told once."""
        merged: dict[tuple[Any, ...], Origin] = {}
        order: dict[tuple[Any, ...], tuple[int, int]] = {}
        for cause, grown in self._exploded(list(causes)):
            origin = self._origin(cause, grown)
            key = (origin.op, origin.phase, origin.mechanism, origin.source, origin.name)
            if key in merged:
                merged[key] = _joined(merged[key], origin)
            else:
                merged[key] = origin
                order[key] = (_rank(origin), cause.operation.index)

        def strength(key: tuple[Any, ...]) -> tuple[Any, ...]:
            rank, index = order[key]
            reaches = merged[key].reaches
            return rank, "loss" not in reaches, -len(reaches), index

        return [merged[key] for key in sorted(merged, key=strength)]

    def _exploded(self, causes: list[Cause]) -> list[tuple[Cause, Growth | None]]:
        """The causes, those on the way back of one exploding gradient told as one: every later
        overflow is the same growth at work. A product stands for them before a sum of gradients,
        which no line of the program asks for."""
        overflows = [c for c in causes if self._is_backward_overflow(c)]
        grown = growth(self.walk, overflows[0]) if overflows else None
        if grown is None:
            return [(c, None) for c in causes]
        chosen = next((c for c in overflows if c.operation.op == "Mul"), None)
        chosen = chosen or next((c for c in overflows if c.operation.op != "AddN"), overflows[0])
        targets = 0
        for cause in overflows:
            targets |= cause.targets
        chosen = replace(chosen, targets=targets)
        rest: list[tuple[Cause, Growth | None]] = [
            (c, None) for c in causes if not any(c is o for o in overflows)
        ]
        return [(chosen, growth(self.walk, chosen) or grown), *rest]

    def benign(self) -> list[Origin]:
        """Non-finite values that nothing important descends from."""
        found: list[Origin] = []
        seen: set[tuple[Any, ...]] = set()
        made = [
            (s, t, k, m.PARAMETER if s.op == "ReadVariableOp" else None)
            for s, t, k in self.walk.untracked()
        ]
        given = [
            (s, t, k, m.INPUT) for s, t, k in self.walk.loose_constants()
            if id(t) not in self.walk.tracked
        ]  # fmt: skip
        for operation, tensor, mask, why in [*made, *given]:
            key = (operation.op, operation.place(), why)
            if key not in seen and len(found) < _MOST_BENIGN:
                seen.add(key)
                found.append(self._origin(Cause(operation, tensor, mask, 0, why), plain=True))
        return found

    def _is_backward_overflow(self, cause: Cause) -> bool:
        if cause.given is not None or cause.operation.stage != BACKWARD:
            return False
        return self.judge.mechanism(cause) == m.PRODUCT

    def _origin(self, cause: Cause, grown: Growth | None = None, plain: bool = False) -> Origin:
        seen, index = cause.operation, first(cause.mask)
        shape = cause.mask.shape
        found = operands(seen, index, shape)
        if cause.given == m.INPUT:
            found = [o for o in found if not np.isfinite(o.value)][:1] or found
        numbers = tuple(o.value for o in found)
        written = overflowed_constant(seen, cause.tensor) if cause.given == m.INPUT else None
        if written is not None:
            numbers = (written,)
        if cause.given in (m.PARAMETER, m.STATE):
            numbers = (at(array(cause.tensor), index, shape),)
        mechanism = self.judge.mechanism(cause, list(numbers))
        if grown is not None:
            mechanism = m.EXPLOSION
        elif seen.stage == TRANSFORM and mechanism == m.PRODUCT:
            mechanism = m.CLIP
        file, line = seen.place()
        if file is None and self._fallback is not None:
            file, line = self._fallback
        numbers_at = array(cause.tensor)
        unseen = (
            cause.given == m.PARAMETER and id(cause.tensor) not in self.walk.replay.observation.made
        )
        return Origin(
            op="ReadVariableOp" if unseen else seen.op,
            phase=seen.phase,
            mechanism=mechanism,
            circumstances=() if plain else self.judge.circumstances(cause, mechanism),
            source=source(file, line),
            index=index,
            inputs=numbers,
            output=at(numbers_at, index, shape),
            count=int(cause.mask.sum()),
            reaches=tuple(self.walk.reached(cause)),
            size=int(cause.mask.size),
            dtype=cause.tensor.dtype.name,
            differentiates=seen.forward.op if seen.forward is not None else None,
            name=cause.name,
            operands=tuple(found),
            places=tuple(tuple(map(int, i)) for i in np.argwhere(cause.mask)[:_MOST_PLACES]),
            path=() if plain else self._path(cause),
            growth=grown,
        )

    def _path(self, cause: Cause) -> tuple[Step, ...]:
        if not cause.targets:
            return ()
        target = (cause.targets & -cause.targets).bit_length() - 1
        steps: list[Step] = []
        for seen in self.walk.path(cause, target)[:_MOST_STEPS]:
            step = _step(seen, self.values)
            if steps and (steps[-1].op, steps[-1].source) == (step.op, step.source):
                steps[-1] = replace(step, repeats=steps[-1].repeats + 1)
            else:
                steps.append(step)
        return tuple(steps)

    def _steep(self, health: dict[str, Health]) -> bool:
        """Without a history: a parameter of absurd size on a slope so steep that any usual step
        overshoots."""
        for name, variable in self.walk.replay.variables.items():
            if not hasattr(variable, "handle") or name not in health:
                continue
            size = largest(variable)
            state = health[name]
            overflowed = size >= 1e12 and state.positive_inf + state.negative_inf > 0
            if overflowed or (size >= 1e6 and state.largest >= 100 * size):
                return True
        return False


def _swung(history: Sequence[Mapping[str, float]]) -> bool:
    """Whether some parameter's largest magnitude grew at most of the last steps, tenfold in all."""
    for name in history[-1]:
        sizes = np.array([step.get(name, np.nan) for step in history], float)
        sizes = sizes[np.isfinite(sizes)]
        wider = len(sizes) >= 3 and sizes[-1] >= 10 * max(sizes[0], 1e-30)
        if wider and np.mean(np.diff(sizes) > 0) >= 0.6:
            return True
    return False


def _rank(origin: Origin) -> int:
    """What came in bad by design (a constant Inf) is told after what the program did."""
    return 1 if origin.mechanism == m.INPUT and not np.isnan(origin.output) else 0


def _joined(origin: Origin, other: Origin) -> Origin:
    more = tuple(n for n in other.reaches if n not in origin.reaches)
    circumstances = tuple(dict.fromkeys(origin.circumstances + other.circumstances))
    return replace(
        origin, reaches=origin.reaches + more, count=origin.count + other.count,
        size=origin.size + other.size, circumstances=circumstances,
    )  # fmt: skip


def _step(seen: Operation, values: Values) -> Step:
    output = seen.outputs[0]
    numbers = array(output) if is_numeric(output) else np.zeros(0)
    mask = values.bad(output)
    index = first(mask) if mask is not None else (0,) * numbers.ndim
    file, line = seen.place()
    inputs = operands(seen, index, numbers.shape) if numbers.size else []
    return Step(
        op=seen.op,
        phase=seen.phase,
        source=source(file, line),
        nan=int(np.isnan(numbers).sum()),
        inf=int(np.isinf(numbers).sum()),
        size=int(numbers.size),
        largest=largest(output),
        inputs=tuple(o.value for o in inputs),
    )
