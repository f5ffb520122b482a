"""Whether a gradient overflowed all at once or after steady growth along a repeated structure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .observe import BACKWARD, Operation
from .values import is_numeric, largest, limits
from .walk import Cause, Walk

_PASSED = ("MatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "Mul", "AddN")
_FEWEST = 8


@dataclass(frozen=True)
class Growth:
    """The largest gradient magnitude each time the way back passed the same operation.

    `log10` runs from the loss towards the cause; `factor` is the mean growth from one pass to the
    next; `op` and `line` name the operation that was passed.
    """

    op: str
    line: int
    log10: tuple[float, ...]
    factor: float


def through_time(operations: Sequence[Operation]) -> Growth | None:
    """The largest gradient each time the way back passed the operation that it passed most often
    (the steps of a recurrence, alike layers), finite or not; None when nothing repeats."""
    passes: dict[tuple[Any, ...], list[Operation]] = defaultdict(list)
    ordinal: Counter[tuple[int, str]] = Counter()
    for seen in operations:
        if seen.stage == BACKWARD and seen.forward is not None and seen.op in _PASSED:
            turn = seen.forward.index, seen.op
            ordinal[turn] += 1
            passes[seen.op, seen.place(), tuple(seen.outputs[0].shape), ordinal[turn]].append(seen)
    most = max(map(len, passes.values()), default=0)
    if most < _FEWEST:
        return None
    # Of what is passed equally often, the gradient is what changes most; the rest are shares of it.
    found = [
        _series(key[0], key[1][1], chosen)
        for key, chosen in passes.items()
        if len(chosen) >= most - 1
    ]
    return max(found, key=_span)


def _series(op: str, line: int, chosen: list[Operation]) -> Growth:
    logs = tuple(round(math.log10(size), 3) if (size := _size(s)) else -math.inf for s in chosen)
    known = [v for v in logs if math.isfinite(v)]
    factor = 10 ** ((known[-1] - known[0]) / (len(logs) - 1)) if known else math.nan
    return Growth(op, line, logs, factor)


def _span(series: Growth) -> float:
    known = [v for v in series.log10 if math.isfinite(v)]
    return max(known, default=0.0) - min(known, default=0.0)


def growth(walk: Walk, cause: Cause) -> Growth | None:
    """Steady growth on the way back to an overflow, or None when a few large factors made it."""
    chain = _gradient_chain(walk, cause.operation)
    sizes = [(seen, math.log10(size)) for seen in chain if (size := _size(seen)) > 0]
    if len(sizes) < _FEWEST:
        return None
    top = limits(cause.tensor)[0]
    best: Growth | None = None
    for by_line in (True, False):
        passes: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        for seen, size in sizes:
            _, line = seen.place()
            passes[seen.op, line if by_line else 0].append(size)
        for (op, line), logs in passes.items():
            found = _steady(op, line, logs, math.log10(top))
            if found is not None and (best is None or len(found.log10) > len(best.log10)):
                best = found
        if best is not None:
            return best
    return None


def _steady(op: str, line: int, logs: list[float], top: float) -> Growth | None:
    if len(logs) < 4:
        return None
    steps = np.diff(logs)
    gained = logs[-1] - logs[0]
    if gained < 0.35 * top or np.mean(steps > 0) < 0.5 or steps.max() > max(0.5 * gained, 1.0):
        return None
    return Growth(op, line, tuple(round(v, 3) for v in logs), float(10 ** (gained / len(steps))))


def _gradient_chain(walk: Walk, start: Operation, limit: int = 6000) -> list[Operation]:
    """The backward operations between the loss and `start`, in the order they ran, following the
    largest incoming gradient."""
    made = walk.replay.observation.made
    chain, seen = [start], start
    for _ in range(limit):
        makers = [
            (largest(t), m.index, m)
            for t in seen.inputs
            if is_numeric(t) and (m := made.get(id(t))) is not None and m.stage == BACKWARD
        ]
        # An incoming gradient, not a local derivative worked out for the same operation; a sum of
        # gradients has no operation of its own.
        outer = [m for m in makers if seen.op != "AddN" and m[2].forward is not seen.forward]
        if not makers:
            break
        seen = max(outer or makers)[2]
        chain.append(seen)
    return chain[::-1]


def _size(seen: Operation) -> float:
    return max((largest(t) for t in seen.outputs), default=0.0)
