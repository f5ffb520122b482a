"""Class-balanced log loss whose clip is swallowed by rounding.

As posted: three dense layers (leaky ReLU, leaky ReLU, sigmoid) trained by plain gradient descent
on a loss that clips p to [ε, 1 − ε] with ε = 1e-10 and picks a branch with `tf.where`. In float32
1 − 1e-10 is 1, so log(1 − p) reaches −Inf in the branch that is not taken, and on the way back
0 · Inf is NaN. A batch without one class divides −1 by 0, with the same end.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from ..inputs.table import breast_cancer, read_table, standardise, train_test_split
from ..lazy import tf
from .common import common_knobs, std_knob
from .contract import (
    Array,
    Curves,
    Dataset,
    FirstMap,
    Matrix,
    Outcome,
    Preset,
    Remedy,
    Scenario,
    Screen,
    Source,
    Tensors,
)
from .knobs import Choice, Config, Number, Text, Toggle

GUARD = 1e-6  # smallest count that a guarded division sees


def load(config: Config, content: bytes | None) -> Dataset:
    label = config["label_column"]
    if content is None:
        table = breast_cancer()
    else:
        table = read_table(content, label=None if label == "auto" else label)
    train, held_out = train_test_split(table, seed=int(config["seed"]))
    features = standardise(table.features, train)
    absent = config["absent_class"]
    if absent != "none":
        train = train[table.labels[train] == (0 if absent == "positive" else 1)]
    return Dataset(
        train={"x": features[train], "y": table.labels[train].astype(np.float64)},
        probe={"x": features[held_out]},
        description=f"{len(train)} training rows, {len(held_out)} held out, "
        f"{features.shape[1]} features; class 1 is “{table.class_names[1]}”",
        facts={"labels": table.labels[held_out], "class_names": table.class_names},
    )


def initialise(
    config: Config, dataset: Dataset, generator: np.random.Generator
) -> dict[str, Array]:
    std = float(config["weight_std"])
    sizes = [dataset.train["x"].shape[1], int(config["hidden_1"]), int(config["hidden_2"]), 1]
    parameters: dict[str, Array] = {}
    for layer, (rows, columns) in enumerate(pairwise(sizes), start=1):
        parameters[f"W{layer}"] = generator.normal(0.0, std, (rows, columns))
        parameters[f"b{layer}"] = np.zeros(columns)
    return parameters


def logits(parameters: Tensors, x: Any) -> Any:
    """Shape [rows]: what the last layer's sigmoid is applied to."""
    hidden = tf.nn.leaky_relu(x @ parameters["W1"] + parameters["b1"])
    hidden = tf.nn.leaky_relu(hidden @ parameters["W2"] + parameters["b2"])
    return tf.squeeze(hidden @ parameters["W3"] + parameters["b3"], axis=-1)


def class_weights(y: Any, knobs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Weights of a row of class 1 and of class 0 (both negative, as the author has them)."""
    n1 = tf.reduce_sum(y)
    n0 = tf.reduce_sum(1 - y)
    if knobs["class_weights"] == "inverse_frequency":
        total = n0 + n1
        return -n0 / total, -n1 / total
    if knobs["guarded_counts"]:
        n1, n0 = tf.maximum(n1, GUARD), tf.maximum(n0, GUARD)
    return -1 / n1, -1 / n0


def loss(parameters: Tensors, batch: Tensors, knobs: Mapping[str, Any]) -> Any:
    y = batch["y"]
    w1, w0 = class_weights(y, knobs)
    logit = logits(parameters, batch["x"])
    if knobs["from_logits"]:
        return from_logits(logit, y, w1, w0)
    epsilon = knobs["epsilon"]
    p = tf.sigmoid(logit)
    p = tf.where(p < epsilon, epsilon, p)
    p = tf.where(p > 1 - epsilon, 1 - epsilon, p)
    if knobs["form"] == "product":
        terms = y * w1 * tf.math.log(p) + (1 - y) * w0 * tf.math.log(1 - p)
    elif knobs["form"] == "double_where":
        harmless = tf.constant(0.5, p.dtype)
        p1 = tf.where(y == 1, p, harmless)
        p0 = tf.where(y == 1, harmless, p)
        terms = tf.where(y == 1, w1 * tf.math.log(p1), w0 * tf.math.log(1 - p0))
    else:
        terms = tf.where(y == 1, w1 * tf.math.log(p), w0 * tf.math.log(1 - p))
    return tf.reduce_sum(terms) / 2


def from_logits(logit: Any, y: Any, w1: Any, w0: Any) -> Any:
    """The same loss without a probability: log p = −softplus(−logit) and its mirror image."""
    terms = tf.where(y == 1, -w1 * tf.nn.softplus(-logit), -w0 * tf.nn.softplus(logit))
    return tf.reduce_sum(terms) / 2


def predict(parameters: Tensors, probe: Tensors, knobs: Mapping[str, Any]) -> dict[str, Any]:
    return {"p": tf.sigmoid(logits(parameters, probe["x"]))}


def lens(config: Config, p: Array) -> tuple[Curves, ...]:
    """Value and slope of log(1 − p) after the clip, near p = 1, in the dtype of the run."""
    if config["from_logits"]:
        return ()
    number: Any = {"float64": np.float64, "float16": np.float16}.get(config["dtype"], np.float32)
    epsilon, one = number(config["epsilon"]), number(1)
    distance = np.logspace(-12, 0, 241)
    clipped = np.minimum((1 - distance).astype(number), one - epsilon)
    with np.errstate(all="ignore"):
        value = np.log(one - clipped).astype(np.float64)
        slope = (one / (one - clipped)).astype(np.float64)
    last = distance[np.argmax(np.isfinite(value))] if np.isfinite(value).any() else np.nan
    swallowed = one - epsilon == one
    title = (
        f"1 − ε rounds to 1 in {config['dtype']}: log(1 − p) reaches −Inf below 1 − p = {last:.1e}"
        if swallowed
        else f"1 − ε is below 1 in {config['dtype']}: log(1 − p) stays finite"
    )
    nearest = float(np.min(1 - p.astype(np.float64)))
    marks = {"ε": float(config["epsilon"]), "nearest prediction": max(nearest, 1e-12)}
    lines = {"−log(1 − p)": -value, "slope 1/(1 − p)": slope}
    return (Curves(title, distance, lines, "", "1 − p", "magnitude", marks, log="xy"),)


def outcome(predictions: Mapping[str, Array], dataset: Dataset, config: Config) -> Outcome:
    truth, guess = dataset.facts["labels"], (predictions["p"] > 0.5).astype(int)
    counts = np.zeros((2, 2), int)
    np.add.at(counts, (truth, guess), 1)
    recall = np.diag(counts) / np.maximum(counts.sum(axis=1), 1)
    names = dataset.facts["class_names"]
    return Outcome(
        metrics={
            "balanced accuracy": float(recall.mean()),
            "accuracy": float(np.mean(truth == guess)),
        },
        panels=(
            Matrix("Confusion matrix, held-out rows", counts, names, names, "truth", "prediction"),
        ),
        lens=lens(config, predictions["p"]),
    )


KNOBS = (
    Number(
        name="epsilon",
        label="ε of the clip",
        group="numerics",
        default=1e-10,
        low=1e-12,
        high=1e-2,
        scale="log",
        shown_if={"from_logits": (False,)},
        help="p is clipped to [ε, 1 − ε]. In float32, 1 − ε rounds to 1 for ε ≤ 2^-25 ≈ 2.98e-8.",
    ),
    Choice(
        name="form",
        label="How a branch is picked",
        group="numerics",
        default="where",
        options={"where": "tf.where", "double_where": "double tf.where", "product": "product"},
        shown_if={"from_logits": (False,)},
        help="tf.where as posted, with the unused input made safe first (double), or as the "
        "product y·log p + (1 − y)·log(1 − p).",
    ),
    Toggle(
        name="from_logits",
        label="Loss from logits",
        group="numerics",
        default=False,
        help="Softplus of the logit instead of the log of a probability: no clip is needed.",
    ),
    Toggle(
        name="guarded_counts",
        label="Guarded counts",
        group="numerics",
        default=False,
        shown_if={"class_weights": ("one_over_count",)},
        help="Divides by max(n, 1e-6): an absent class no longer divides by zero.",
    ),
    Choice(
        name="class_weights",
        label="Class weights",
        group="model",
        default="one_over_count",
        options={
            "one_over_count": "1/n of the class",
            "inverse_frequency": "n of the other / total",
        },
        help="As posted w1 = −1/n1 and w0 = −1/n0; by inverse frequency w1 = −n0/total and "
        "w0 = −n1/total.",
    ),
    Number(
        name="hidden_1",
        label="Units in layer 1",
        group="model",
        default=16,
        low=1,
        high=256,
        integer=True,
        stage="data",
        unit="units",
        help="Width of the first layer.",
    ),
    Number(
        name="hidden_2",
        label="Units in layer 2",
        group="model",
        default=8,
        low=1,
        high=256,
        integer=True,
        stage="data",
        unit="units",
        help="Width of the second layer.",
    ),
    std_knob(0.1),
    Choice(
        name="absent_class",
        label="Class absent from the batch",
        group="data",
        default="none",
        options={"none": "none", "positive": "class 1", "negative": "class 0"},
        stage="data",
        help="Leaves all rows of one class out of training, as a small batch does by chance.",
    ),
    Text(
        name="label_column",
        label="Label column",
        group="data",
        default="auto",
        help="Name of the column with the two classes in your CSV; auto looks for label, target, "
        "class or y.",
    ),
    *common_knobs(learning_rate=0.05, batch_size=0),
)

SCENARIO = Scenario(
    name="balanced_loss",
    title="Balanced loss",
    story="Training goes well, then all six gradients turn NaN while the loss stays finite.",
    question="Why does a clip at ε = 1e-10 not protect the log?",
    knobs=KNOBS,
    presets=(
        Preset(
            "as-posted",
            "As posted",
            "ε = 1e-10 in float32, two tf.where, plain gradient descent on all rows.",
        ),
        Preset(
            "mended",
            "Mended",
            "The same loss computed from logits; counts guarded against an absent class.",
            {"from_logits": True, "guarded_counts": True},
        ),
    ),
    remedies=(
        Remedy(
            "epsilon",
            "ε = 1e-7",
            {"epsilon": 1e-7},
            "1 − 1e-7 is below 1 in float32.",
            addresses=("lost-epsilon",),
        ),
        Remedy(
            "from_logits",
            "Loss from logits",
            {"from_logits": True},
            "softplus has no log of a rounded probability.",
            addresses=("log-of-zero",),
        ),
        Remedy(
            "double_where",
            "Double tf.where",
            {"form": "double_where"},
            "The branch that is not taken gets a harmless input.",
            addresses=("masked-branch",),
        ),
        Remedy(
            "guarded_counts",
            "Guarded counts max(n, 1e-6)",
            {"guarded_counts": True},
            "Said to keep 1/n finite; matters only when a class is absent.",
            addresses=("empty-count",),
        ),
        Remedy(
            "inverse_frequency",
            "Weights by inverse frequency",
            {"class_weights": "inverse_frequency"},
            "Said to tame the class weights.",
        ),
        Remedy(
            "product",
            "Product form instead of tf.where",
            {"form": "product"},
            "Said to avoid the branch; 0 · log 0 is NaN already on the way forward.",
        ),
        Remedy(
            "clip_norm",
            "Clip each gradient to norm 1",
            {"clipping": "norm", "clip_threshold": 1.0},
            "Said to stop the explosion; a NaN divided by its norm stays NaN.",
        ),
        Remedy("small_rate", "Learning rate 0.01", {"learning_rate": 0.01}, "Smaller steps."),
        Remedy("small_weights", "Weights N(0, 0.01²)", {"weight_std": 0.01}, "A smaller start."),
        Remedy(
            "float64",
            "float64",
            {"dtype": "float64"},
            "1 − 1e-10 is below 1 in float64.",
            addresses=("lost-epsilon",),
        ),
    ),
    screens=(
        Screen(
            "It trains well, until it does not",
            "A small network learns to tell malignant from benign. The loss falls, step after "
            "step; then all six gradients are NaN at once, while the loss is still finite.",
            "health",
        ),
        Screen(
            "One element, one line",
            "The step that broke is replayed, operation by operation. One row's prediction has "
            "reached 1, and 1 − 1e-10 is 1 in float32: the clip lets it through. The log of 0 is "
            "not taken by tf.where, yet its slope is, times 0.",
            "diagnosis",
        ),
        Screen(
            "What people advise",
            "Clip the gradients. Lower the learning rate. Weight the classes differently. Each is "
            "run now, from the same seed.",
            "remedies",
            remedies=("clip_norm", "small_rate", "inverse_frequency"),
        ),
        Screen(
            "What works",
            "An ε that float32 can hold, an input made safe before the branch, a loss that never "
            "forms the probability, or a wider dtype.",
            "remedies",
            remedies=("epsilon", "double_where", "from_logits", "float64"),
        ),
        Screen(
            "Why it works",
            "From logits, −log(1 − p) is softplus: its slope lies between 0 and 1 wherever the "
            "prediction goes. The same seed now trains on, and the held-out rows agree.",
            "outcome",
            preset="mended",
        ),
    ),
    source=Source(
        "CSV with a label column",
        ("csv", "tsv", "txt"),
        "One header line, numbers in every column but the label, two classes. At most 20 MB.",
    ),
    load=load,
    initialise=initialise,
    loss=loss,
    predict=predict,
    outcome=outcome,
    # Guarding changes nothing but an absent class, whose empty sum is 0.
    reference={"from_logits": True, "guarded_counts": True},
    together=(("product", "epsilon"), ("guarded_counts", "epsilon")),
    metric="balanced accuracy",
    first_map=FirstMap(
        (
            "epsilon=1e-12:1e-2:log:32",
            "learning_rate=1e-3:1:log:32",
            "weight_std=1e-3:2:log:32",
        ),
        steps=500,
    ),
)
