"""A fit by basis functions whose learned exponents meet a base of zero.

As posted: `ParameterNet`, multi-head attention over the samples (x, g(x)), predicts a, b, c and d
for each basis function f; the fit is the sum of d · (f((a·x)^b))^c. At x = 0 a power with exponent
b < 1 has a finite value but an infinite derivative b · 0^(b−1), and Inf · 0 = NaN upstream of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..inputs.formula import parse_formula
from ..inputs.points import read_points
from ..lazy import tf
from .common import common_knobs, std_knob
from .contract import (
    Array,
    Curves,
    Dataset,
    FirstMap,
    Outcome,
    Preset,
    Remedy,
    Scenario,
    Screen,
    Source,
    Tensors,
)
from .knobs import Choice, Config, Interval, Number, Text, Toggle

HEADS = 2
HEAD_SIZE = 8
WIDTH = HEADS * HEAD_SIZE
KINDS = 4  # a, b, c and d of each basis function
FUNCTIONS = ("sin", "identity", "tanh", "exp(−u)")


def basis() -> tuple[Callable[[Any], Any], ...]:
    return tf.sin, tf.identity, tf.tanh, lambda u: tf.exp(-u)


def load(config: Config, content: bytes | None) -> Dataset:
    if content is not None:
        points = read_points(content)
        x, g, what = points.x, points.y, "your points"
    else:
        x = np.linspace(config["x_low"], config["x_high"], int(config["points"]))
        g, what = parse_formula(config["formula"])(x), f"g(x) = {config['formula']}"
    samples = {"x": x, "g": g}
    return Dataset(
        train=samples,
        probe=samples,
        description=f"{len(x)} samples of {what} on [{x.min():g}, {x.max():g}]",
    )


def initialise(
    config: Config, dataset: Dataset, generator: np.random.Generator
) -> dict[str, Array]:
    def weights(rows: int, columns: int) -> Array:
        glorot = config["attention_initialiser"] == "glorot_normal"
        std = np.sqrt(2.0 / (rows + columns)) if glorot else config["weight_std"]
        return generator.normal(0.0, std, (rows, columns))

    functions = int(config["functions"])
    parameters = {f"attention.{name}": weights(2, WIDTH) for name in ("Wq", "Wk", "Wv")}
    if config["layer_norm"]:
        parameters |= {"norm.gamma": np.ones(WIDTH), "norm.beta": np.zeros(WIDTH)}
    return parameters | {
        "output.W": weights(WIDTH, KINDS * functions),
        "output.b": start_bias(config, functions, generator).ravel(),
    }


def start_bias(config: Config, functions: int, generator: np.random.Generator) -> Array:
    """[4, functions]: the output's bias; near one, it makes a, d ~ N(1, 0.1²) and b = c = 1."""
    if config["start"] == "zero":
        return np.zeros((KINDS, functions))
    value = np.ones((KINDS, functions))
    value[[0, 3]] = generator.normal(1.0, 0.1, (2, functions))
    bias = np.log(np.expm1(value))  # inverse of softplus
    if config["exponents"] == "bounded":
        low, high = config["exponent_bounds"]
        share = np.clip((1.0 - low) / (high - low), 0.01, 0.99)
        bias[[1, 2]] = np.log(share / (1 - share))  # inverse of the sigmoid
    return bias


def attention(parameters: Tensors, tokens: Any, knobs: Mapping[str, Any]) -> Any:
    """Shape [WIDTH]: multi-head attention over tokens [samples, 2], averaged over the samples."""

    def heads(name: str) -> Any:
        projected = tf.reshape(tokens @ parameters[name], [-1, HEADS, HEAD_SIZE])
        return tf.transpose(projected, [1, 0, 2])

    query, key, value = heads("attention.Wq"), heads("attention.Wk"), heads("attention.Wv")
    scores = tf.matmul(query, key, transpose_b=True)
    if knobs["attention_scaling"]:
        scores = scores / tf.cast(HEAD_SIZE**0.5, scores.dtype)
    attended = tf.matmul(tf.nn.softmax(scores), value)
    features = tf.reshape(tf.reduce_mean(attended, axis=1), [WIDTH])
    if knobs["layer_norm"]:
        centred = features - tf.reduce_mean(features)
        variance = tf.reduce_mean(tf.square(centred))
        features = centred * tf.math.rsqrt(variance + 1e-3)
        features = features * parameters["norm.gamma"] + parameters["norm.beta"]
    return features


def coefficients(parameters: Tensors, samples: Tensors, knobs: Mapping[str, Any]) -> list[Any]:
    """a, b, c and d, each of shape [functions] and positive."""
    tokens = tf.stack([samples["x"], samples["g"]], axis=1)
    features = checked(attention(parameters, tokens, knobs), "attention", knobs)
    raw = tf.linalg.matvec(parameters["output.W"], features, transpose_a=True)
    a, b, c, d = tf.unstack(tf.reshape(raw + parameters["output.b"], [KINDS, -1]))
    return [tf.nn.softplus(a), exponent(b, knobs), exponent(c, knobs), tf.nn.softplus(d)]


def exponent(raw: Any, knobs: Mapping[str, Any]) -> Any:
    if knobs["exponents"] == "bounded":
        low, high = knobs["exponent_bounds"]
        return low + (high - low) * tf.sigmoid(raw)
    return tf.nn.softplus(raw)


def power(base: Any, exponent: Any, knobs: Mapping[str, Any]) -> Any:
    """base ** exponent, by the way the knob `power` names."""
    how = knobs["power"]
    if how == "safe_offset":
        return tf.pow(tf.maximum(base, knobs["epsilon"]), exponent)
    if how == "exp_log":
        return tf.exp(exponent * tf.math.log(tf.maximum(base, knobs["epsilon"])))
    if how == "double_where":
        zero = tf.equal(base, 0)
        harmless = tf.where(zero, tf.ones_like(base), base)
        return tf.where(zero, tf.zeros_like(base), tf.pow(harmless, exponent))
    if how == "sign_preserving":
        return tf.sign(base) * tf.pow(tf.maximum(tf.abs(base), knobs["epsilon"]), exponent)
    return tf.pow(base, exponent)


def checked(value: Any, name: str, knobs: Mapping[str, Any]) -> Any:
    if not knobs["check_numerics"]:
        return value
    return tf.debugging.check_numerics(value, f"check_numerics after {name}")


def fit(parameters: Tensors, samples: Tensors, knobs: Mapping[str, Any]) -> Any:
    """ĝ(x), shape [samples]."""
    a, b, c, d = coefficients(parameters, samples, knobs)
    total = tf.zeros_like(samples["x"])
    for i, f in enumerate(basis()[: a.shape[0]]):
        inner = checked(power(a[i] * samples["x"], b[i], knobs), "inner power", knobs)
        outer = checked(power(f(inner), c[i], knobs), "outer power", knobs)
        total += d[i] * outer
    return total


def loss(parameters: Tensors, batch: Tensors, knobs: Mapping[str, Any]) -> Any:
    return tf.reduce_mean(tf.square(fit(parameters, batch, knobs) - batch["g"]))


def predict(parameters: Tensors, probe: Tensors, knobs: Mapping[str, Any]) -> dict[str, Any]:
    _, b, c, _ = coefficients(parameters, probe, knobs)
    return {"fit": fit(parameters, probe, knobs), "exponents": tf.concat([b, c], axis=0)}


def lens(config: Config, exponents: Array) -> tuple[Curves, ...]:
    """Value and slope of base^b near 0 for the smallest exponent that is predicted now."""
    b = float(np.min(exponents))
    base = np.logspace(-12, 0, 241)
    guarded = config["power"] in ("safe_offset", "exp_log", "sign_preserving")
    safe = np.maximum(base, config["epsilon"]) if guarded else base
    value, slope = safe**b, b * safe ** (b - 1) * (safe == base)
    marks = {"ε": float(config["epsilon"])} if guarded else {}
    if config["power"] == "double_where":
        at_zero = "0, by the second tf.where"
    else:
        at_zero = "infinite" if b < 1 and not guarded else "finite"
    title = f"Smallest exponent {b:.3g}: at a base of 0 the slope of base^b is {at_zero}"
    lines = {"value": value, "slope": np.where(slope > 0, slope, np.nan)}
    return (Curves(title, base, lines, "", "base", "magnitude", marks, log="xy"),)


def outcome(predictions: Mapping[str, Array], dataset: Dataset, config: Config) -> Outcome:
    x, g, fitted = dataset.probe["x"], dataset.probe["g"], predictions["fit"].astype(np.float64)
    with np.errstate(all="ignore"):
        spread = np.sum((g - g.mean()) ** 2)
        r2 = 1 - np.sum((fitted - g) ** 2) / spread if spread > 0 else float("nan")
    lines = {"g(x)": g, "ĝ(x)": fitted}
    return Outcome(
        metrics={"R²": float(r2)},
        panels=(Curves("Target g(x) and fit ĝ(x)", x, lines, "g(x)", "x", "value"),),
        lens=lens(config, predictions["exponents"]),
    )


KNOBS = (
    Choice(
        name="power",
        label="Power",
        group="numerics",
        default="pow",
        options={
            "pow": "x^b",
            "safe_offset": "max(x, ε)^b",
            "exp_log": "exp(b·log max(x, ε))",
            "sign_preserving": "sign(x)·max(|x|, ε)^b",
            "double_where": "0 at 0, else x^b",
        },
        help="How a base is raised to an exponent: by tf.pow as posted, or kept away from 0.",
    ),
    Number(
        name="epsilon",
        label="ε of the base",
        group="numerics",
        default=1e-6,
        low=1e-12,
        high=1e-1,
        scale="log",
        shown_if={"power": ("safe_offset", "exp_log", "sign_preserving")},
        help="Smallest base that is raised to a power.",
    ),
    Choice(
        name="exponents",
        label="Exponents",
        group="numerics",
        default="softplus",
        options={"softplus": "positive", "bounded": "bounded"},
        help="b and c by softplus (any positive number) or squeezed into bounds by a sigmoid.",
    ),
    Interval(
        name="exponent_bounds",
        label="Exponent bounds",
        group="numerics",
        default=(0.1, 2.0),
        low=0.0,
        high=5.0,
        increment=0.05,
        shown_if={"exponents": ("bounded",)},
        help="Range of b and c. Below 1 the slope of x^b at 0 is infinite.",
    ),
    Toggle(
        name="check_numerics",
        label="check_numerics after each transform",
        group="numerics",
        default=False,
        help="Stops at the first non-finite value, forward or backward, and names the transform.",
    ),
    Choice(
        name="start",
        label="Start",
        group="model",
        default="zero",
        options={"zero": "zero bias", "near_one": "near 1"},
        stage="data",
        help="Bias of the output at 0, or such that a, d ~ N(1, 0.1²) and b = c = 1.",
    ),
    Number(
        name="functions",
        label="Basis functions",
        group="model",
        default=4,
        low=1,
        high=len(FUNCTIONS),
        integer=True,
        stage="data",
        help=f"How many of {', '.join(FUNCTIONS)} are summed.",
    ),
    Toggle(
        name="attention_scaling",
        label="Scaled attention",
        group="model",
        default=False,
        help="Divides the attention's scores by √(head size).",
    ),
    Choice(
        name="attention_initialiser",
        label="Attention weights",
        group="model",
        default="normal",
        options={"normal": "N(0, std²)", "glorot_normal": "Glorot normal"},
        stage="data",
        help="How the weights start.",
    ),
    std_knob(0.3, {"attention_initialiser": ("normal",)}),
    Toggle(
        name="layer_norm",
        label="Layer normalisation",
        group="model",
        default=False,
        help="Normalises the attention's output.",
    ),
    Text(
        name="formula",
        label="g(x)",
        group="data",
        default="sin(3*x) + x^2",
        help="Target: any formula in x, such as sin(3*x) + x^2, exp(-x), sqrt(abs(x)).",
    ),
    Number(
        name="x_low",
        label="Lower end of x",
        group="data",
        default=0.0,
        low=-2.0,
        high=0.9,
        increment=0.01,
        stage="data",
        help="The samples run from here to the upper end. A file of points brings its own x.",
    ),
    Number(
        name="x_high",
        label="Upper end of x",
        group="data",
        default=1.0,
        low=1.0,
        high=10.0,
        increment=0.1,
        stage="data",
        help="The last sample.",
    ),
    Number(
        name="points",
        label="Samples",
        group="data",
        default=64,
        low=8,
        high=512,
        integer=True,
        stage="data",
        unit="points",
        help="Number of samples, evenly spaced.",
    ),
    *common_knobs(learning_rate=0.01, batch_size=0, optimizer="adam"),
)

SCENARIO = Scenario(
    name="basis_fit",
    title="Basis fit",
    story="The loss is finite and the graph connected, yet the gradients are NaN from the first "
    "step, whatever the initialiser or learning rate.",
    question="Which point of the data does a learned exponent not survive?",
    knobs=KNOBS,
    presets=(
        Preset("as-posted", "As posted", "Powers by tf.pow of samples that begin at x = 0."),
        Preset(
            "mended",
            "Mended",
            "Bases kept above ε, exponents bounded, small weights at first.",
            {
                "power": "safe_offset",
                "exponents": "bounded",
                "attention_scaling": True,
                "weight_std": 0.03,
                "learning_rate": 0.03,
            },
        ),
    ),
    remedies=(
        Remedy(
            "safe_offset",
            "Safe offset max(x, ε)",
            {"power": "safe_offset"},
            "The slope of x^b is finite for x ≥ ε.",
            addresses=("power-of-zero",),
        ),
        Remedy(
            "exp_log",
            "Power as exp(b·log max(x, ε))",
            {"power": "exp_log"},
            "The same, and the log is never asked for 0.",
            addresses=("power-of-zero",),
        ),
        Remedy(
            "sign_preserving",
            "Sign-preserving power",
            {"power": "sign_preserving"},
            "Also defined for negative bases.",
            addresses=("power-of-negative", "power-of-zero"),
        ),
        Remedy(
            "double_where",
            "Double tf.where around the power",
            {"power": "double_where"},
            "0^b is 0 for every b > 0, so its slope along a, b and c is 0; no ε is needed.",
        ),
        Remedy(
            "bounds",
            "Exponents in [0.1, 2]",
            {"exponents": "bounded", "exponent_bounds": (0.1, 2.0)},
            "Said to keep the power tame; at 0 any exponent below 1 has an infinite slope.",
        ),
        Remedy(
            "bounds_above_one",
            "Exponents in [1, 2]",
            {"exponents": "bounded", "exponent_bounds": (1.0, 2.0)},
            "At 0 the slope is finite for b ≥ 1; a negative base still has no power.",
        ),
        Remedy(
            "near_one",
            "Start near 1",
            {"start": "near_one"},
            "Said to be safe; predicted exponents are not exactly 1.",
        ),
        Remedy(
            "attention_scaling",
            "Scaled attention",
            {"attention_scaling": True},
            "Said to stop the scores from exploding.",
        ),
        Remedy(
            "glorot",
            "Glorot normal attention weights",
            {"attention_initialiser": "glorot_normal"},
            "Said to keep activations in range.",
        ),
        Remedy("layer_norm", "Layer normalisation", {"layer_norm": True}, "Said to stabilise."),
        Remedy(
            "adam_small",
            "Adam at 1e-4",
            {"optimizer": "adam", "learning_rate": 1e-4},
            "Smaller steps; the first gradient is NaN already.",
        ),
        Remedy(
            "global_norm",
            "Clip by global norm 1",
            {"clipping": "global_norm", "clip_threshold": 1.0},
            "Said to stop the explosion; a NaN norm makes every gradient NaN.",
        ),
        Remedy(
            "check_numerics",
            "check_numerics after each transform",
            {"check_numerics": True},
            "Finds a bad value and stops; it mends nothing.",
        ),
        Remedy(
            "away_from_zero",
            "Samples from x = 0.01",
            {"x_low": 0.01},
            "Leaves out the point that breaks: another question is answered.",
            answers_another_question=True,
        ),
    ),
    screens=(
        Screen(
            "NaN from the first step",
            "An attention network predicts the exponents of a fit. Its loss is finite, its graph "
            "is connected, and its first gradient is NaN in every parameter.",
            "health",
        ),
        Screen(
            "The point x = 0",
            "At a base of 0 the power has a value but, with an exponent below 1, no finite slope: "
            "b · 0^(b − 1) is infinite. The next factor on the way back is x itself, which is 0.",
            "diagnosis",
        ),
        Screen(
            "What people advise",
            "Scale the attention, normalise, initialise better, take smaller steps, clip. None of "
            "it touches the point where the slope is infinite.",
            "remedies",
            remedies=("attention_scaling", "layer_norm", "glorot", "adam_small", "global_norm"),
        ),
        Screen(
            "What works",
            "Keep the base away from 0. Leaving the point out works as well, but answers another "
            "question.",
            "remedies",
            remedies=("safe_offset", "exp_log", "away_from_zero"),
        ),
        Screen(
            "The fit",
            "With a safe base the same network fits g(x), x = 0 included.",
            "outcome",
            preset="mended",
        ),
    ),
    source=Source(
        "CSV of x, y",
        ("csv", "tsv", "txt"),
        "Two columns of numbers, 8 to 2,000 rows; a header line is optional.",
    ),
    load=load,
    initialise=initialise,
    loss=loss,
    predict=predict,
    outcome=outcome,
    checks=("check_numerics",),
    reference={"power": "double_where"},
    together=(("safe_offset", "bounds"),),
    metric="R²",
    first_map=FirstMap(
        (
            "epsilon=1e-12:1e-1:log:24",
            "x_low=-0.2:0.2:linear:25",
            "learning_rate=1e-3:1:log:24",
        ),
        steps=150,
    ),
)
