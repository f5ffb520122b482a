"""The contract of a scenario: data and pure functions, no state.

A scenario is one file in this folder that defines `SCENARIO = Scenario(...)`. Because `loss` is a
pure function of tensors, the same function is trained, replayed operation by operation, run in
float64 as the reference, and run for whole grids of settings at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from ..errors import BadInput
from .knobs import AnyKnob, Config, KnobValue, defaults

Array = np.ndarray[Any, Any]
Tensors = Mapping[str, Any]  # name → tf.Tensor


@dataclass(frozen=True)
class Preset:
    """A named set of knobs; what it does not name stands at the knob's default."""

    name: str
    title: str
    story: str
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Remedy:
    """A change of knobs that is said to mend the scenario, and by what reasoning.

    `answers_another_question`: it changes what is asked (other data, a shorter input), so that its
    gradient has nothing to be compared with. `addresses`: mechanisms and circumstances of a
    diagnosis that it is meant for; empty for advice that merely circulates.
    """

    name: str
    title: str
    knobs: Mapping[str, KnobValue]
    reason: str
    answers_another_question: bool = False
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Screen:
    """One screen of a scenario's guided story; a real run of `preset` and `knobs` is behind it.

    `shows`: the run's gradient "health", its "diagnosis", the trials of `remedies` (their names),
    or the "outcome", what was learned.
    """

    title: str
    text: str
    shows: Literal["health", "diagnosis", "remedies", "outcome"]
    preset: str = "as-posted"
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True)
class FirstMap:
    """The map of settings that a person is offered at first.

    `axes`: in the words of `models.sweeps.axes.read_axis`; the first two whose knobs matter are
    taken. `knobs`: what differs from the preset, whichever it is.
    """

    axes: tuple[str, ...] = ("learning_rate=1e-4:1:log:32",)
    steps: int = 200
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """What a run trains on.

    `train`: arrays whose first axis is the row; a batch is drawn from these rows.
    `probe`: arrays that `predict` is shown, so that a person can see what was learned.
    `facts`: anything else that `outcome` needs (vocabularies, names).
    """

    train: Mapping[str, Array]
    probe: Mapping[str, Array]
    description: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(next(iter(self.train.values())))


@dataclass(frozen=True)
class Curves:
    """Lines over a common x; `target` names the one that the others should meet.

    `marks`: name → x of vertical lines. `log`: the axes that are logarithmic, of "x" and "y".
    """

    title: str
    x: Array
    lines: Mapping[str, Array]
    target: str
    x_label: str
    y_label: str
    marks: Mapping[str, float] = field(default_factory=dict)
    log: str = ""


@dataclass(frozen=True)
class Matrix:
    """Counts with named rows and columns (a confusion matrix)."""

    title: str
    values: Array
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_label: str
    column_label: str


@dataclass(frozen=True)
class Listing:
    """Rows of text under named columns; `good` tells which rows came out right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    good: tuple[bool, ...]


@dataclass(frozen=True)
class Outcome:
    """What the model has learned so far; the first metric is the scenario's training metric.

    `lens` is a close look at the spot where this scenario's numbers are in danger.
    """

    metrics: Mapping[str, float]
    panels: tuple[Curves | Matrix | Listing, ...]
    lens: tuple[Curves, ...] = ()


@dataclass(frozen=True)
class Source:
    """What a person may bring instead of the scenario's own data."""

    label: str
    file_types: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Scenario:
    """Data and pure functions; see the scenarios in this folder for examples.

    load(config, content): the data set, from the scenario's own data (None) or a file's bytes;
        raises BadInput.
    initialise(config, dataset, generator): parameter name → float64 array, in the order in which
        they are shown.
    loss(parameters, batch, knobs): scalar tensor. `parameters` and the floating-point arrays of
        `batch` have the run's dtype. Knobs that are not structural are scalar tensors of that
        dtype (an Interval is a pair of them), structural ones plain Python values.
    predict(parameters, probe, knobs): name → tensor, what `outcome` needs.
    outcome(predictions, dataset, config): metrics and pictures, in NumPy.
    screens: the guided story, three to six screens.
    checks: toggles that make the graph raise at a non-finite value (`tf.debugging`).
    nudges(parameters, batch, knobs): for a scenario with a recurrence, name → zeros [steps, …], in
        the order of the forward pass. `loss` adds what stands under that name in `batch` to the
        state of each step; the gradient by it is the gradient of the loss by that state.
    reference: knobs that give the numerically sound form of the same mathematical loss, whatever
        the others say; float64 without clipping is understood.
    together: names of remedies that are worth trying both at once.
    metric: name of the first metric of its outcomes.
    first_map: where the stability map begins.
    """

    name: str
    title: str
    story: str
    question: str
    knobs: tuple[AnyKnob, ...]
    presets: tuple[Preset, ...]
    remedies: tuple[Remedy, ...]
    source: Source
    load: Callable[[Config, bytes | None], Dataset]
    initialise: Callable[[Config, Dataset, np.random.Generator], dict[str, Array]]
    loss: Callable[[Tensors, Tensors, Mapping[str, Any]], Any]
    predict: Callable[[Tensors, Tensors, Mapping[str, Any]], dict[str, Any]]
    outcome: Callable[[Mapping[str, Array], Dataset, Config], Outcome]
    screens: tuple[Screen, ...] = ()
    checks: tuple[str, ...] = ()
    nudges: Callable[[Tensors, Tensors, Mapping[str, Any]], dict[str, Any]] | None = None
    reference: Mapping[str, KnobValue] = field(default_factory=dict)
    together: tuple[tuple[str, str], ...] = ()
    metric: str = "metric"
    first_map: FirstMap = field(default_factory=FirstMap)

    def knob(self, name: str) -> AnyKnob:
        for knob in self.knobs:
            if knob.name == name:
                return knob
        known = [knob.name for knob in self.knobs]
        near = get_close_matches(name, known, n=1)
        advice = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}."
        raise BadInput(f"{self.name} has no knob “{name}”; {advice}", field=name)

    def preset(self, name: str) -> Preset:
        for preset in self.presets:
            if preset.name == name:
                return preset
        known = " and ".join(preset.name for preset in self.presets)
        raise BadInput(f"{self.name} has no preset “{name}”; it has {known}.", field="preset")

    def config(self, preset: str, changes: Mapping[str, KnobValue] | None = None) -> Config:
        """All knobs: defaults, then the preset's, then `changes`, each checked (BadInput)."""
        config = defaults(self.knobs) | dict(self.preset(preset).knobs)
        for name, value in (changes or {}).items():
            config[name] = self.knob(name).check(value)
        return config

    def restarts(self, old: Config, new: Config) -> tuple[str, ...]:
        """Names of the structural knobs in which two configurations differ."""
        return tuple(k.name for k in self.knobs if k.structural and old[k.name] != new[k.name])
