"""Many runs of one structure in one compiled graph.

The program's own step is mapped over runs by TensorFlow, so that every run computes what it would
compute alone. A run that breaks stands still at the state before its bad step.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..lazy import tf
from ..scenarios.contract import Array
from ..scenarios.knobs import Config
from ..training.program import BAD, Program, State

SHUFFLE_KEY = 498_247_692  # first word of every seed of `index_shuffle`


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

    def __init__(self, program: Program, batch_size: int) -> None:
        self.program = program
        self._batch_size = batch_size
        self.checked = False  # whether its first steps were seen to be those of single runs
        self._predict = tf.function(
            partial(self._build_predict), autograph=False, reduce_retracing=True
        )
        self._lock = threading.Lock()
        self._bursts: dict[tuple[str, ...], Any] = {}  # names of the data of its own → function

    def start(
        self,
        parameters: Sequence[Mapping[str, Array]],
        configs: Sequence[Config],
        data: Sequence[Mapping[str, Array]],
    ) -> Many:
        """Runs at step 0; `data` are their training arrays, empty where they share them."""
        n, program = len(configs), self.program
        one = program.initial_state(parameters[0])
        weights = [
            tf.constant(np.stack([p[name] for p in parameters]), program.weight_dtype)
            for name in program.names
        ]
        optimizer = [tf.repeat(t[None], n, axis=0) for t in one.optimizer]
        changed = program.compute_dtype != program.weight_dtype
        clipped = configs[0]["clipping"] != "off"
        gradients = len(program.names) * (2 if changed or clipped else 1)
        return Many(
            state=State(tf.zeros([n], tf.int64), weights, optimizer),
            knobs=_stack([program.knob_tensors(config) for config in configs]),
            bad=tf.zeros([n], tf.bool),
            loss=tf.zeros([n], program.compute_dtype),
            finite=tf.ones([n, gradients], tf.bool),
            data=_stack([program.tensors(arrays) for arrays in data]) if data else {},
        )

    def burst(self, many: Many, shared: Mapping[str, Any], steps: int) -> Many:
        """Up to `steps` further steps of every run that is not bad, in one compiled call."""
        return self._bursts[tuple(many.data)](many, dict(shared), tf.constant(steps))

    def predict(self, many: Many, probe: Mapping[str, Any]) -> list[dict[str, Array]]:
        """The program's predictions of each of these runs on the same probe."""
        predictions = self._predict(many.state.parameters, many.knobs, dict(probe))
        arrays = {name: p.numpy() for name, p in predictions.items()}
        return [{name: a[row] for name, a in arrays.items()} for row in range(len(many.bad))]

    def _build_predict(self, parameters: Any, knobs: Any, probe: Any) -> Any:
        def one(run: tuple[Any, Any]) -> Any:
            return self.program.predictions(*run, probe)

        shape = tf.nest.map_structure(lambda t: t[0], (parameters, knobs))
        like = tf.nest.map_structure(lambda t: tf.TensorSpec(None, t.dtype), one(shape))
        return tf.map_fn(one, (parameters, knobs), fn_output_signature=like)

    def compile(self, many: Many, shared: Mapping[str, Any]) -> None:
        """Trace the burst for runs like these; CannotMap where TensorFlow is unable to."""
        own = tuple(many.data)
        with self._lock:
            if own in self._bursts:
                return
            signature = [_any_number(many), tf.nest.map_structure(_like, dict(shared))]
            burst = tf.function(
                partial(self._build),
                autograph=False,
                input_signature=[*signature, _like(tf.constant(0))],
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
            drawn = draw_batches(many, shared, self._batch_size)
            after = tf.vectorized_map(one, many._replace(data=drawn))
            return taken + 1, after._replace(data=many.data)

        invariants = (tf.TensorShape([]), tf.nest.map_structure(lambda t: t.shape, many))
        return tf.while_loop(going, step, (tf.constant(0), many), invariants)[1]


_vectorised: WeakKeyDictionary[Program, Vectorised] = WeakKeyDictionary()


def vectorised(program: Program, batch_size: int) -> Vectorised:
    """The program's vectorised form, built once and dropped with the program."""
    return _vectorised.setdefault(program, Vectorised(program, batch_size))


def draw_batches(many: Many, shared: Mapping[str, Any], batch_size: int) -> dict[str, Any]:
    """`draw_batch` for every run: name → [n, batch, …]; empty where all take all shared rows.

    By the operation below `tf.random.experimental.index_shuffle`, which takes a seed for each
    index; the function itself does not, and mapped over runs it gives other numbers.
    """
    data, n = many.data, tf.shape(many.bad)[0]
    rows = next(iter(data.values())).shape[1] if data else next(iter(shared.values())).shape[0]
    if batch_size == 0 or batch_size >= rows:
        return data
    batches = rows // batch_size
    epoch, position = many.state.step // batches, many.state.step % batches
    places = position[:, None] * batch_size + tf.range(batch_size, dtype=tf.int64)
    key = tf.stack(
        [tf.fill([n], tf.constant(SHUFFLE_KEY, tf.int64)), many.knobs["seed"], epoch], axis=1
    )
    chosen = tf.raw_ops.RandomIndexShuffle(
        index=tf.reshape(places, [-1]),
        seed=tf.repeat(tf.cast(key, tf.uint32), batch_size, axis=0),
        max_index=tf.constant(rows - 1, tf.int64),
        rounds=4,
    )
    chosen = tf.reshape(chosen, [-1, batch_size])
    own = {name: tf.gather(a, chosen, batch_dims=1) for name, a in data.items()}
    return own or {name: tf.gather(a, chosen) for name, a in shared.items()}


def take(many: Many, rows: Array) -> Many:
    """The runs at these places."""
    return tf.nest.map_structure(lambda t: tf.gather(t, rows), many)


def states(many: Many) -> list[State]:
    """Each run's state, in NumPy, as its program takes it."""
    step, parameters, optimizer = tf.nest.map_structure(lambda t: t.numpy(), many.state)
    return [
        State(step[row], [p[row] for p in parameters], [o[row] for o in optimizer])
        for row in range(len(step))
    ]


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
