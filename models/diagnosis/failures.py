"""Operations that TensorFlow refused to run, told as causes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from . import mechanisms as m
from .lines import GRADIENT, USER, Frames, Source, source
from .observe import Observation
from .values import is_numeric

_OP = re.compile(r"\[Op:(\w+)\]|__wrapped__(\w+?)_device")
_INDEX = re.compile(r"(?:indices|segment_ids)\[([\d, ]+)\] = \[?([-\d, ]+)")
_LABEL = re.compile(r"label value of (-?\d+) which is outside the valid range of \[0, (\d+)\)")
_LIMIT = re.compile(r"\[0, (\d+)\)|param shape \[([\d, ]+)\]")
_SINGULAR = ("not invertible", "not successful", "singular", "not positive", "decomposition")
_OUT_OF_RANGE = (
    "is not in [0", "outside the valid range", "does not index into", "out of range",
    "out of bound", "must be < num_segments", "is out of",
)  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """The operation that failed, why (None when only its non-finite inputs are to blame), its
    line, the element and numbers in question, and its floating-point inputs."""

    op: str
    mechanism: str | None
    source: Source | None
    index: tuple[int, ...]
    inputs: tuple[Any, ...]
    tensors: list[Any]


def read_failure(error: Exception, observation: Observation) -> Failure | None:
    """What a TensorFlow error says about numbers; None when it is about something else."""
    text = str(error)
    found = _OP.search(text)
    op = next((g for g in found.groups() if g), "") if found else ""
    where, tensors = _place(error, observation)
    index: tuple[int, ...] = ()
    numbers: tuple[Any, ...] = ()
    mechanism: str | None = None
    if any(words in text for words in _OUT_OF_RANGE):
        mechanism = m.INDEX
        if place := _INDEX.search(text):
            index = tuple(int(i) for i in place[1].split(","))
            limit = _LIMIT.search(text)
            numbers = _beyond(place[2], (limit[1] or limit[2]) if limit else "")
        elif label := _LABEL.search(text):
            numbers = (int(label[1]), int(label[2]))
            index = _where_label(error, int(label[1]))
    elif "division by zero" in text:  # only whole numbers: others have an Inf
        mechanism = m.DIVIDE
    elif m.SINGULAR.get(op) == m.DEFINITE and _mentions(text, _SINGULAR):
        mechanism = m.DEFINITE
        numbers = tuple(float(np.ravel(t.numpy())[0]) for t in tensors[:1])
    elif op != "CheckNumerics" and all(np.isfinite(t.numpy()).all() for t in tensors):
        return None
    if mechanism == m.DEFINITE and any(not np.isfinite(t.numpy()).all() for t in tensors):
        mechanism = None
    return Failure(op, mechanism, where, index, numbers, tensors)


def _beyond(index: str, sizes: str) -> tuple[int, ...]:
    """The part of an index that lies outside, and the size of the table there if it is known."""
    parts, limits = ([int(i) for i in text.split(",") if i.strip()] for text in (index, sizes))
    pairs = list(zip(parts, limits, strict=False))
    return next((p for p in pairs if not 0 <= p[0] < p[1]), tuple(parts[:1]))


def _mentions(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _frames(error: Exception) -> list[tuple[FrameType, int]]:
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return frames


def _place(error: Exception, observation: Observation) -> tuple[Source | None, list[Any]]:
    """The innermost user line of the error (on the way back that of the operation differentiated),
    and the tensors the failed call was given."""
    kinds, where, tensors = Frames(), None, []
    for frame, line in _frames(error):
        kind = kinds.kind(frame.f_code)
        if kind == USER:
            where = source(frame.f_code.co_filename, line)
        elif kind == GRADIENT:
            forward = observation.differentiated(frame, kind)
            if forward is not None:
                where = source(*forward.place())
        name = frame.f_code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
        if name.startswith("gen_") and not frame.f_code.co_name.endswith("_eager_fallback"):
            tensors = [v for v in frame.f_locals.values() if is_numeric(v) and hasattr(v, "numpy")]
    return where, tensors


def _where_label(error: Exception, value: int) -> tuple[int, ...]:
    for frame, _ in reversed(_frames(error)):
        labels: Any = frame.f_locals.get("labels")
        if hasattr(labels, "numpy"):
            places = np.argwhere(np.asarray(labels.numpy()) == value)
            if len(places):
                return tuple(int(i) for i in places[0])
    return ()
