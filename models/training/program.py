"""Programs: a scenario's step, compiled once and shared by all runs of the same structure.

A program holds no state. It maps (state, knobs, data) to (new state, what was measured), so that
any number of threads can use it at once, a snapshot costs nothing, and the state before a bad step
is simply the state that was passed in.
"""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..diagnosis import Diagnosis, diagnose
from ..lazy import tf
from ..scenarios.contract import Array, Dataset, Scenario
from ..scenarios.knobs import Config, Interval, Number
from .clipping import clip
from .health import FIELDS, MAGNITUDES, measure_rows, nonfinite, norms
from .optimizers import PureOptimizer

KEPT_PROGRAMS = 24

# What a step did with its gradients.
FINE, BAD, RESCALED = 0, 1, 2

HEAD = 4  # numbers of every step: step, loss, status, loss scale
LARGEST_RECORD = 4_000_000  # gradient entries that a compiled call records at most


class State(NamedTuple):
    """Everything that a step changes: tensors, never mutated."""

    step: Any  # int64 scalar: number of the step that comes next
    parameters: list[Any]
    optimizer: list[Any]


class Rows(NamedTuple):
    """What was measured in n steps, as NumPy arrays; P parameters, F = len(FIELDS)."""

    step: Array  # int64 [n]
    loss: Array  # float64 [n]
    status: Array  # int64 [n]: FINE, BAD or RESCALED (an overflow that loss scaling repairs)
    raw: Array  # float64 [n, P, F]: health of the gradient
    applied: Array  # float64 [n, P, F]: health after clipping
    update_ratio: Array  # float64 [n, P]: norm of the update / norm of the weights before it, NaN
    # but for a burst's last step

    def first(self, n: int) -> Rows:
        return Rows(*(array[:n] for array in self))

    def last(self) -> Rows:
        return Rows(*(array[-1:] for array in self))

    def before_last(self) -> Rows:
        return Rows(*(array[:-1] for array in self))

    @staticmethod
    def concatenate(parts: list[Rows]) -> Rows:
        return Rows(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class Attempt(NamedTuple):
    """One step as tensors; P parameters."""

    loss: Any  # scalar
    finite: Any  # bool [P], or [2P] where gradients are changed before they are applied
    status: Any  # int32 scalar: FINE, BAD or RESCALED
    state: State  # after it


@dataclass(frozen=True)
class Gradients:
    """One step's gradients in full, by parameter name."""

    loss: float
    raw: dict[str, Array]
    applied: dict[str, Array]


class Program:
    """The compiled functions of one scenario at one setting of the knobs that shape its graph."""

    def __init__(self, scenario: Scenario, config: Config, shapes: Mapping[str, tuple[int, ...]]):
        self.scenario = scenario
        self.names = tuple(shapes)
        self.sizes = np.array([int(np.prod(s)) for s in shapes.values()], np.int64)
        self._structure = {k.name: config[k.name] for k in scenario.knobs if k.stage == "graph"}
        self._live = [k for k in scenario.knobs if k.stage == "step"]
        self.compute_dtype = str(config["dtype"])
        self.weight_dtype = {"float64": "float64"}.get(self.compute_dtype, "float32")
        self._optimizer = PureOptimizer(
            str(config["optimizer"]),
            list(shapes.values()),
            self.weight_dtype,
            loss_scaling=self._sixteen_bits and bool(config["loss_scaling"]),
        )
        self.traced = False
        self._clipped = config["clipping"] != "off" or self._optimizer.loss_scaling
        entries = int(self.sizes.sum()) * (2 if self._clipped else 1)
        self._longest = max(1, LARGEST_RECORD // entries)
        self._burst = _graph(self._build_burst)
        self._gradients = _graph(self._build_gradients)
        self._predict = _graph(self.predictions)
        self._through_time = _graph(self._build_through_time)

    @property
    def _sixteen_bits(self) -> bool:
        return self.compute_dtype in ("float16", "bfloat16")

    # What callers use: plain values in, plain values out.

    def initial_state(self, parameters: Mapping[str, Array]) -> State:
        weights = [tf.constant(parameters[name], self.weight_dtype) for name in self.names]
        return State(tf.constant(0, tf.int64), weights, self._optimizer.initial_state())

    def tensors(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        """A data set's arrays on the device, floating-point ones in the compute dtype."""
        return {
            name: tf.constant(a, self.compute_dtype if a.dtype.kind == "f" else None)
            for name, a in arrays.items()
        }

    def burst(
        self,
        state: State,
        config: Config,
        train: Mapping[str, Any],
        steps: int,
        *,
        stop_at_bad: bool,
        monitor: bool = True,
    ) -> tuple[State, Rows]:
        """Up to `steps` steps in one compiled call.

        With `stop_at_bad` it ends at the first bad step: that step is measured but not applied, and
        the state returned is the one before it. Without, a bad step is skipped or applied, as the
        knob `on_bad` says. `monitor=False` measures nothing but the loss (for benchmarks).
        """
        knobs, left = self.knob_tensors(config), steps
        parts: list[Rows] = []
        checked = config["on_bad"] == "skip" or self._optimizer.loss_scaling
        while True:
            n = min(left, self._longest) if monitor else left

            def take(state: State, n: int) -> tuple[State, Rows]:
                limit, stop = tf.constant(n), tf.constant(stop_at_bad)
                state, *measured = self._burst(
                    state, knobs, train, limit, stop, monitor=monitor, checked=checked
                )
                return state, self._rows(*measured)

            after, rows = take(state, n)
            bad = np.flatnonzero(rows.status == BAD)
            if stop_at_bad and len(bad):
                good = int(bad[0])
                if not checked:  # it went on beyond the bad step: go back, the steps are the same
                    after = take(state, good)[0] if good else state
                measured = rows.first(good + 1)
                measured.update_ratio[-1] = np.nan  # the bad step is not taken
                return after, Rows.concatenate([*parts, measured])
            parts.append(rows)
            state, left = after, left - n
            if left <= 0:
                self.traced = True
                return state, Rows.concatenate(parts)

    def gradients(self, state: State, config: Config, train: Mapping[str, Any]) -> Gradients:
        """The gradients that the next step would compute, without taking it."""
        loss, raw, applied = self._gradients(state, self.knob_tensors(config), train)
        return Gradients(
            float(loss),
            {name: g.numpy() for name, g in zip(self.names, raw, strict=True)},
            {name: g.numpy() for name, g in zip(self.names, applied, strict=True)},
        )

    def diagnose(
        self, state: State, config: Config, train: Mapping[str, Any], history: Any = None
    ) -> Diagnosis:
        """Why the next step's loss or gradients are not finite: the step is replayed eagerly, with
        every operation observed. `history` is handed on (see `diagnose`)."""
        knobs = self.knob_tensors(config)
        weights = [tf.identity(tf.cast(p, self.compute_dtype)) for p in state.parameters]
        variables = dict(zip(self.names, weights, strict=True))
        batch = draw_batch(train, state.step, self._structure["batch_size"], knobs["seed"])

        def loss() -> Any:
            return self.scenario.loss(variables, batch, self._loss_knobs(knobs))

        def clipped(gradients: list[Any]) -> list[Any]:
            gradients = [tf.cast(g, self.weight_dtype) for g in gradients]
            threshold = tf.cast(knobs["clip_threshold"], self.weight_dtype)
            return clip(gradients, str(self._structure["clipping"]), threshold)

        transform = None if self._structure["clipping"] == "off" else clipped
        return diagnose(loss, variables, transform, history=history)

    def predict(self, state: State, config: Config, probe: Mapping[str, Any]) -> dict[str, Array]:
        predictions = self._predict(state.parameters, self.knob_tensors(config), probe)
        return {name: p.numpy() for name, p in predictions.items()}

    def through_time(
        self, state: State, config: Config, train: Mapping[str, Any]
    ) -> dict[str, Array]:
        """The gradient of the loss by a recurrence's state, step by step in forward order: name →
        float64 [steps, FIELDS] (its health over batch and units); empty without a recurrence."""
        if self.scenario.nudges is None:
            return {}
        health = self._through_time(state, self.knob_tensors(config), train)
        return {name: rows.numpy() for name, rows in health.items()}

    def loss_scale(self, state: State) -> float | None:
        scale = self._optimizer.scale(state.optimizer)
        return None if scale is None else float(scale)

    # What is traced.

    def _build_burst(
        self,
        state: State,
        knobs: Any,
        train: Any,
        steps: Any,
        stop_at_bad: Any,
        *,
        monitor: bool,
        checked: bool,
    ) -> Any:
        """State, head [n, HEAD], health of raw and applied gradients [n, P, F] and update ratio of
        the last step [P]; the last three only if monitored.

        Gradients are only recorded in the loop, and measured after it for all steps at once:
        starting an operation costs more than its entries. Where a bad step must not be taken the
        loop is `checked`: it looks whether all is finite before each update.
        """
        entries = int(self.sizes.sum())
        kinds = [("float64", HEAD)]
        if monitor:
            kinds.append((self.compute_dtype, entries))
        if monitor and self._clipped:
            kinds.append((self.weight_dtype, entries))
        arrays = tuple(tf.TensorArray(d, size=steps, element_shape=[n]) for d, n in kinds)

        def going(taken: Any, halted: Any, *_: Any) -> Any:
            return (taken < steps) & ~halted

        def step(taken: Any, _halted: Any, arrays: Any, _before: Any, state: State) -> Any:
            new, head, raw, applied, halted = self._step(state, knobs, train, stop_at_bad, checked)
            written = [head]
            if monitor:  # one array for all parameters: every one more costs as much as its entries
                written += [_flat(g) for g in ([raw, applied] if self._clipped else [raw])]
            arrays = tuple(a.write(taken, w) for a, w in zip(arrays, written, strict=True))
            return taken + 1, halted, arrays, state.parameters, new

        start = (tf.constant(0), tf.constant(False), arrays, state.parameters, state)
        taken, _, arrays, before, state = tf.while_loop(going, step, start)
        head, *recorded = (a.stack()[:taken] for a in arrays)
        if not monitor:
            return state, head
        health = [measure_rows(tf.split(rows, self.sizes, axis=1)) for rows in recorded]
        raw, applied = health[0], health[-1]
        return state, head, raw, applied, _update_ratio(before, state.parameters)

    def _step(
        self, state: State, knobs: Any, train: Any, stop_at_bad: Any, checked: bool
    ) -> tuple[State, Any, Any, Any, Any]:
        """The state after one step, its head, its gradients as computed and as applied, and whether
        the burst halts at it."""
        loss, raw, applied = self._differentiate(state, knobs, train)

        def apply() -> Any:
            rate = knobs["learning_rate"]
            return self._optimizer.apply(state.optimizer, applied, state.parameters, rate)

        status, halted, step = tf.constant(FINE), tf.constant(False), state.step + 1
        if checked:
            gradients = raw if applied is raw else [*raw, *applied]
            finite = [tf.reduce_all(tf.math.is_finite(t)) for t in (loss, *gradients)]
            status = self._status(tf.reduce_all(finite), loss, state)
            bad = status == BAD
            halted = bad & stop_at_bad
            step = tf.where(halted, state.step, step)
            parameters, optimizer = tf.cond(
                halted | (bad & (knobs["on_bad"] == "skip")),
                lambda: (state.parameters, state.optimizer),
                apply,
            )
        else:
            parameters, optimizer = apply()
        scale = self._optimizer.scale(state.optimizer)
        numbers = (state.step, loss, status, 1.0 if scale is None else scale)
        head = tf.stack([tf.cast(n, tf.float64) for n in numbers])
        return State(step, parameters, optimizer), head, raw, applied, halted

    def _status(self, finite: Any, loss: Any, state: State) -> Any:
        scale = self._optimizer.scale(state.optimizer)
        if scale is None:
            return tf.where(finite, FINE, BAD)
        repairable = (scale > 1) & tf.math.is_finite(loss)
        return tf.where(finite, FINE, tf.where(repairable, RESCALED, BAD))

    def _differentiate(self, state: State, knobs: Any, train: Any) -> tuple[Any, Any, Any]:
        """Loss, gradients as computed (scaled, in the compute dtype), gradients to apply."""
        weights = [tf.cast(p, self.compute_dtype) for p in state.parameters]
        batch = draw_batch(train, state.step, self._structure["batch_size"], knobs["seed"])
        scale = self._optimizer.scale(state.optimizer)
        with tf.GradientTape() as tape:
            tape.watch(weights)
            named = dict(zip(self.names, weights, strict=True))
            loss = self.scenario.loss(named, batch, self._loss_knobs(knobs))
            target = loss if scale is None else loss * tf.cast(scale, loss.dtype)
        raw = tape.gradient(target, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        raw = [tf.convert_to_tensor(g) for g in raw]
        unscaled = raw
        if self._sixteen_bits:
            unscaled = [tf.cast(g, self.weight_dtype) for g in raw]
            if scale is not None:
                unscaled = [g / scale for g in unscaled]
        how = str(self._structure["clipping"])
        if how == "off":
            return loss, raw, unscaled
        return loss, raw, clip(unscaled, how, tf.cast(knobs["clip_threshold"], self.weight_dtype))

    def _build_gradients(self, state: State, knobs: Any, train: Any) -> Any:
        return self._differentiate(State(*state), knobs, train)

    def _build_through_time(self, state: State, knobs: Any, train: Any) -> Any:
        assert self.scenario.nudges is not None
        weights = [tf.cast(p, self.compute_dtype) for p in state.parameters]
        named = dict(zip(self.names, weights, strict=True))
        batch = draw_batch(train, state.step, self._structure["batch_size"], knobs["seed"])
        nudges = self.scenario.nudges(named, batch, self._loss_knobs(knobs))
        with tf.GradientTape() as tape:
            tape.watch(list(nudges.values()))
            loss = self.scenario.loss(named, batch | nudges, self._loss_knobs(knobs))
        gradients = tape.gradient(loss, nudges)
        return {
            name: measure_rows([tf.reshape(g, [g.shape[0], -1])])[:, 0]
            for name, g in gradients.items()
        }

    # Tensors in, tensors out: for whoever traces steps in a function of his own.

    def attempt(self, state: State, knobs: Any, train: Any) -> Attempt:
        """The step that comes next, taken whatever becomes of it."""
        loss, raw, applied = self._differentiate(state, knobs, train)
        seen = raw if applied is raw else [*raw, *applied]
        finite = tf.stack([tf.reduce_all(tf.math.is_finite(g)) for g in seen])
        status = self._status(tf.reduce_all(finite) & tf.math.is_finite(loss), loss, state)
        parameters, optimizer = self._optimizer.apply(
            state.optimizer, applied, state.parameters, knobs["learning_rate"]
        )
        return Attempt(loss, finite, status, State(state.step + 1, parameters, optimizer))

    def predictions(self, parameters: Any, knobs: Any, probe: Any) -> Any:
        """What the scenario predicts of the probe, as tensors."""
        weights = [tf.cast(p, self.compute_dtype) for p in parameters]
        named = dict(zip(self.names, weights, strict=True))
        return self.scenario.predict(named, probe, self._loss_knobs(knobs))

    # Knobs as tensors, rows as arrays.

    def knob_tensors(self, config: Config) -> dict[str, Any]:
        tensors: dict[str, Any] = {"seed": tf.constant(config["seed"], tf.int64)}
        for knob in self._live:
            value = config[knob.name]
            if isinstance(knob, Number):
                tensors[knob.name] = tf.constant(value, tf.float64)
            elif isinstance(knob, Interval):
                tensors[knob.name] = tuple(tf.constant(end, tf.float64) for end in value)
            else:
                tensors[knob.name] = tf.constant(value)
        return tensors

    def _loss_knobs(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        live = tf.nest.map_structure(
            lambda t: tf.cast(t, self.compute_dtype) if t.dtype == tf.float64 else t, dict(tensors)
        )
        return self._structure | live

    def _rows(
        self, head: Any, raw: Any = None, applied: Any = None, last_ratio: Any = None
    ) -> Rows:
        numbers = head.numpy()
        n, parameters = len(numbers), 0 if raw is None else len(self.names)
        step, loss, status, scale = numbers.T
        ratio = np.full((n, parameters), np.nan)
        before = after = np.zeros((n, parameters, len(FIELDS)))
        if raw is not None:
            before, after = raw.numpy(), applied.numpy()
            if self._optimizer.loss_scaling:  # magnitudes in units of the unscaled loss
                before[..., MAGNITUDES] /= scale[:, None, None]
            ratio[-1:] = last_ratio.numpy()
        bad = ~np.isfinite(loss) | ((nonfinite(before) + nonfinite(after)).sum(axis=1) > 0)
        status = np.where(bad & (status == FINE), BAD, status)
        return Rows(step.astype(np.int64), loss, status.astype(np.int64), before, after, ratio)


def _flat(tensors: list[Any]) -> Any:
    return tf.concat([t if t.shape.rank == 1 else tf.reshape(t, [-1]) for t in tensors], axis=0)


def _update_ratio(before: list[Any], after: list[Any]) -> Any:
    """[parameters]: norm of the update over norm of the weights; NaN where the weights are 0."""
    updates = [b - a for a, b in zip(before, after, strict=True)]
    size, change = (
        tf.concat([norms(tf.reshape(t, [1, -1])) for t in tensors], axis=0)
        for tensors in (before, updates)
    )
    return tf.where(size > 0, change / size, tf.constant(np.nan, tf.float64))


def _graph(build: Callable[..., Any]) -> Any:
    """`tf.function` of a method. TensorFlow counts tracings by a method's code, whatever object it
    belongs to, and would warn that each program traces anew what others have; a partial is a
    function of its own."""
    return tf.function(partial(build), autograph=False)


def draw_batch(train: Any, step: Any, batch_size: int, seed: Any) -> dict[str, Any]:
    """The batch of a step: a slice of the epoch's permutation, a function of seed and step alone.

    `index_shuffle` permutes without an array of all rows; an epoch leaves out the rows that do not
    fill a batch. A batch size of 0, or of all rows, takes every row in its own order.
    """
    rows = next(iter(train.values())).shape[0]
    if batch_size == 0 or batch_size >= rows:
        return dict(train)
    batches = rows // batch_size
    epoch, position = step // batches, step % batches
    places = tf.range(batch_size, dtype=tf.int64) + position * batch_size
    key = tf.stack([seed, epoch])
    chosen = tf.random.experimental.index_shuffle(
        places, tf.cast(key, tf.uint32), tf.constant(rows - 1, tf.int64)
    )
    return {name: tf.gather(array, chosen) for name, array in train.items()}


_programs: OrderedDict[Any, Program] = OrderedDict()
_lock = threading.Lock()


def program_for(scenario: Scenario, config: Config, dataset: Dataset, shapes: Any) -> Program:
    """The shared program of this structure, built if need be; the least used are dropped."""
    structure = tuple(config[k.name] for k in scenario.knobs if k.stage == "graph")
    rows = tuple((name, a.shape, a.dtype.str) for name, a in dataset.train.items())
    key = (scenario.name, structure, tuple(shapes.items()), rows)
    with _lock:
        if key not in _programs:
            _programs[key] = Program(scenario, config, shapes)
        _programs.move_to_end(key)
        while len(_programs) > KEPT_PROGRAMS:
            _programs.popitem(last=False)
            gc.unfreeze()  # `settle` froze it; the next collection shall find it
        return _programs[key]
