"""Neighbours of the public cases: the same kinds of fault as people write them elsewhere.

Each is a loss of one vector or matrix `w`, with the operation, phase, mechanism and circumstances
that theory gives. The line that must be named ends in `# here`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from models.diagnosis import Diagnosis, diagnose

total = tf.reduce_sum


@dataclass(frozen=True)
class Neighbour:
    loss: Callable
    at: Any
    dtype: Any
    told: tuple
    reaches: set[str]
    says: str


NEIGHBOURS: list[Neighbour] = []


def neighbour(op, phase, mechanism, *circumstances, at, reaches="w loss", dtype=tf.float32, says=""):
    told = op, phase, mechanism, set(circumstances)

    def add(loss):
        NEIGHBOURS.append(Neighbour(loss, at, dtype, told, set(reaches.split()), says))
        return loss

    return add


def diagnosed(n: Neighbour) -> Diagnosis:
    w = tf.Variable(tf.cast(tf.constant(n.at, tf.float64), n.dtype), name="w")
    return diagnose(lambda: n.loss(w), [w])


@neighbour("Exp", "forward", "exp-overflow", "masked-branch", at=[[10.0, 0.0], [0.0, 10.0]])
def contrast_without_the_diagonal(w):
    e = tf.exp(w @ w)  # here
    return total(tf.math.log(total(e * (1 - tf.eye(2)), 1)))


@neighbour("RealDiv", "forward", "divide-by-zero", "masked-branch", at=[0.0, 1.0])
def forces_without_the_diagonal(w):
    near = 1 / (w[:, None] - w[None]) ** 2  # here
    return total((near**2 - near) * (1 - tf.eye(2)))


@neighbour("Sub", "forward", "bad-input", "masked-branch", at=[1.0, 2.0])
def missing_label_times_zero(w):
    error = w - tf.constant([1.0, np.nan])  # here
    return total(error**2 * tf.constant([1.0, 0.0]))


@neighbour("Sub", "forward", "bad-input", "masked-branch", at=[1.0, 2.0], reaches="w")
def missing_label_not_selected(w):
    y = tf.constant([1.0, np.nan])
    error = w - y  # here
    return total(tf.where(tf.math.is_nan(y), 0.0, error**2))


@pytest.mark.parametrize("n", NEIGHBOURS, ids=lambda n: n.loss.__name__)
def test_a_neighbour_is_told_as_its_kind(n):
    d = diagnosed(n)
    origin = d.origins[0]
    told = origin.op, origin.phase, origin.mechanism, set(origin.circumstances)
    assert (d.verdict, told) == ("broken", n.told), str(d)
    lines, first = inspect.getsourcelines(n.loss)
    here = next(first + i for i, text in enumerate(lines) if text.rstrip().endswith("# here"))
    assert origin.source is not None
    assert (origin.source.file, origin.source.line) == (__file__, here), str(d)
    assert {name for o in d.origins for name in o.reaches} == n.reaches
    assert d.remedies
    assert n.says in d.explanation
