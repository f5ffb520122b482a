"""A toy that breaks for reasons that can be worked out on paper.

One weight starts at 1 and the loss pushes it down by the learning rate in each step. Once it is no
greater than a threshold, 0 is raised to the power ½ behind a mask, and the gradient is Inf · 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from models.errors import BadInput
from models.lazy import tf
from models.remedies.trials import Trials
from models.scenarios.common import common_knobs
from models.scenarios.contract import Dataset, Outcome, Preset, Remedy, Scenario, Source
from models.scenarios.knobs import Choice, Number, Toggle

FORMS = {"masked": "as posted", "double_where": "safe", "triple": "three times", "none": "no slope"}


def load(config: Any, content: bytes | None) -> Dataset:
    if config["rows"] == 13:
        raise BadInput("13 rows are not to be had.", field="rows")
    x = np.ones(int(config["rows"]))
    return Dataset({"x": x}, {"x": x}, "ones")


def root(u: Any, form: str) -> Any:
    """√max(u, 0), by the way that `form` names."""
    if form == "masked":
        return tf.pow(u * tf.cast(u > 0, u.dtype), 0.5)
    safe = tf.where(u > 0, u, tf.ones_like(u))
    return tf.where(u > 0, tf.sqrt(safe), tf.zeros_like(u))


def loss(parameters: Mapping[str, Any], batch: Any, knobs: Mapping[str, Any]) -> Any:
    w, form = parameters["w"], knobs["form"]
    pull = tf.reduce_mean(batch["x"]) * w
    value = pull + 1e-4 * root(w - knobs["threshold"], form)
    if knobs["second"] != "absent":
        value += 1e-4 * root(w - 0.85, knobs["second"])
    if form == "triple":
        return 3 * value
    return 0 * w if form == "none" else value


def outcome(predictions: Any, dataset: Dataset, config: Any) -> Outcome:
    return Outcome({"weight": float(predictions["w"])}, ())


TOY = Scenario(
    name="toy",
    title="Toy",
    story="A weight sinks.",
    question="How low?",
    knobs=(
        Choice(
            name="form", label="Form", group="numerics", default="masked", help="", options=FORMS
        ),
        Choice(
            name="second",
            label="Second trap",
            group="numerics",
            default="absent",
            help="",
            options=FORMS | {"absent": "absent"},
        ),
        Number(
            name="threshold", label="Threshold", group="model", default=0.9, low=-9, high=1, help=""
        ),
        Number(
            name="start",
            label="Start",
            group="model",
            default=1,
            low=0,
            high=9,
            help="",
            stage="data",
        ),
        Number(
            name="rows",
            label="Rows",
            group="data",
            default=4,
            low=1,
            high=99,
            integer=True,
            help="",
            stage="data",
        ),
        Toggle(name="idle", label="Idle", group="model", default=False, help="", stage="step"),
        *common_knobs(learning_rate=0.01, batch_size=0),
    ),
    presets=(Preset("as-posted", "As posted", ""),),
    remedies=(
        Remedy("safe", "Safe", {"form": "double_where"}, "Exact."),
        Remedy("triple", "Triple", {"form": "triple"}, "Distorts."),
        Remedy("frozen", "Frozen", {"form": "none"}, "Hides."),
        Remedy("slow", "Slow", {"learning_rate": 0.002}, "Delays."),
        Remedy("glacial", "Glacial", {"learning_rate": 1e-5}, "Delays beyond the horizon."),
        Remedy("clip", "Clip", {"clipping": "norm", "clip_threshold": 10.0}, "Too late."),
        Remedy("higher", "Higher", {"threshold": 0.97}, "Sooner."),
        Remedy("second_safe", "Second safe", {"second": "double_where"}, "The other trap."),
        Remedy("rows", "Thirteen", {"rows": 13}, "Impossible."),
        Remedy(
            "below",
            "Threshold at −9",
            {"threshold": -9.0},
            "Elsewhere.",
            answers_another_question=True,
        ),
        Remedy("high", "High start", {"start": 9.0}, "A longer way."),
        Remedy("posted", "As posted", {"form": "masked"}, "No change."),
    ),
    source=Source("None", (), "None."),
    load=load,
    initialise=lambda config, dataset, generator: {"w": np.array(float(config["start"]))},
    loss=loss,
    predict=lambda parameters, probe, knobs: {"w": parameters["w"]},
    outcome=outcome,
    reference={"form": "double_where"},
    together=(("safe", "second_safe"), ("triple", "clip")),
)


@pytest.fixture(scope="session")
def toy() -> Scenario:
    return TOY


@pytest.fixture(scope="session")
def tried() -> Any:
    """`tried(scenario, steps=…, knob=…)`: trials that have ended."""

    def tried(scenario: Scenario, steps: int | None = None, **changes: Any) -> Trials:
        config = scenario.config("as-posted", changes)
        trials = Trials(scenario, config, scenario.load(config, None), steps=steps)
        trials.start()
        assert trials.wait(300)
        assert trials.error == ""
        return trials

    return tried
