"""Many runs of one structure in one compiled graph.

The program's own step is mapped over runs by TensorFlow, so that every run computes what it would
compute alone. A run that breaks stands still at the state before its bad step.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..lazy import tf
from ..scenarios.contract import Array
from ..scenarios.knobs import Config
from ..training.program import BAD, Program, State


class CannotMap(Exception):
    """This program's step has an operation that cannot be mapped over runs."""


class Many(NamedTuple):
    """n runs: the same tensors as those of one run, each with the run as its first axis."""

    state: State
    knobs: dict[str, Any]
    bad: Any  # bool [n]: whether the step that comes next was tried and is bad
    loss: Any  # [n]: of the latest step
    finite: Any  # bool [n, P or 2P]: gradients of the latest step, see `Attempt.finite`
    data: dict[str, Any]  # the runs' own data; empty where they share it


class Vectorised:
    """The compiled functions of a program for any number of runs at once; holds no state."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._lock = threading.Lock()
        self._bursts: dict[tuple[str, ...], Any] = {}  # names of the data of its own → function

    def start(
        self,
        parameters: Sequence[Mapping[str, Array]],
        configs: Sequence[Config],
        data: Sequence[Mapping[str, Array]],
    ) -> Many:
        """Runs at step 0; `data` are their training arrays, empty where they share them."""
        states = [self.program.initial_state(p) for p in parameters]
        knobs = [self.program.knob_tensors(config) for config in configs]
        arrays = [self.program.tensors(arrays) for arrays in data]
        n = len(configs)
        changed = self.program.compute_dtype != self.program.weight_dtype
        clipped = configs[0]["clipping"] != "off"
        gradients = len(self.program.names) * (2 if changed or clipped else 1)
        return Many(
            state=_stack(states),
            knobs=_stack(knobs),
            bad=tf.zeros([n], tf.bool),
            loss=tf.zeros([n], self.program.compute_dtype),
            finite=tf.ones([n, gradients], tf.bool),
            data=_stack(arrays) if arrays else {},
        )

    def burst(self, many: Many, shared: Mapping[str, Any], steps: int) -> Many:
        """Up to `steps` further steps of every run that is not bad, in one compiled call."""
        return self._bursts[tuple(many.data)](many, dict(shared), tf.constant(steps))

    def compile(self, many: Many, shared: Mapping[str, Any]) -> None:
        """Trace the burst for runs like these; CannotMap where TensorFlow is unable to."""
        own = tuple(many.data)
        with self._lock:
            if own in self._bursts:
                return
            signature = [_any_number(many), tf.nest.map_structure(_like, dict(shared))]
            burst = tf.function(
                self._build, autograph=False, input_signature=[*signature, _like(tf.constant(0))]
            )
            try:
                with _conversions_unannounced():
                    burst.get_concrete_function()
            except Exception as error:  # whatever TensorFlow says of what it cannot convert
                raise CannotMap(str(error)) from error
            self._bursts[own] = burst

    def _build(self, many: Many, shared: Any, steps: Any) -> Any:

        def one(run: Many) -> Many:
            state = State(*run.state)
            attempt = self.program.attempt(state, run.knobs, run.data or shared)
            bad = attempt.status == BAD
            stay = run.bad | bad
            after = tf.nest.map_structure(lambda a, b: tf.where(stay, a, b), state, attempt.state)
            loss = tf.where(run.bad, run.loss, attempt.loss)
            finite = tf.where(run.bad, run.finite, attempt.finite)
            return run._replace(state=after, bad=stay, loss=loss, finite=finite)

        def going(taken: Any, many: Many) -> Any:
            return (taken < steps) & ~tf.reduce_all(many.bad)

        def step(taken: Any, many: Many) -> Any:
            return taken + 1, tf.vectorized_map(one, many)

        invariants = (tf.TensorShape([]), tf.nest.map_structure(lambda t: t.shape, many))
        return tf.while_loop(going, step, (tf.constant(0), many), invariants)[1]


_vectorised: WeakKeyDictionary[Program, Vectorised] = WeakKeyDictionary()


def vectorised(program: Program) -> Vectorised:
    """The program's vectorised form, built once and dropped with the program."""
    return _vectorised.setdefault(program, Vectorised(program))


def take(many: Many, rows: Array) -> Many:
    """The runs at these places."""
    return tf.nest.map_structure(lambda t: tf.gather(t, rows), many)


def state_of(many: Many, row: int) -> State:
    """One run's state, as its program wants it."""
    return State(*tf.nest.map_structure(lambda t: t[row], many.state))


def _stack(structures: Sequence[Any]) -> Any:
    """Equal structures of tensors as one with a leading axis."""
    flat = [tf.nest.flatten(structure) for structure in structures]
    stacked = [tf.constant(np.stack([t.numpy() for t in ts])) for ts in zip(*flat, strict=True)]
    return tf.nest.pack_sequence_as(structures[0], stacked)


def _like(tensor: Any) -> Any:
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _any_number(many: Many) -> Many:
    """Their specification, with the number of runs left open so that one graph serves for all."""
    return tf.nest.map_structure(lambda t: tf.TensorSpec([None, *t.shape[1:]], t.dtype), many)


@contextmanager
def _conversions_unannounced() -> Iterator[None]:
    """TensorFlow warns of operations that it maps by a loop; they are few and cost little."""
    logger = logging.getLogger("tensorflow")

    def told(record: logging.LogRecord) -> bool:
        return "Using a while_loop for converting" not in record.getMessage()

    logger.addFilter(told)
    try:
        yield
    finally:
        logger.removeFilter(told)
