"""Each loss against NumPy in float64, written from the formula; gradients against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]


def sigmoid(v: Array) -> Array:
    return 1 / (1 + np.exp(-v))


def softplus(v: Array) -> Array:
    return np.logaddexp(0, v)


def softmax(v: Array) -> Array:
    e = np.exp(v - v.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def seq2seq_loss(p: dict[str, Array], batch: dict[str, Array], knobs: dict[str, Any]) -> float:
    """Sentence by sentence, word by word."""

    def cell(side: str, hidden: Array, x: Array) -> Array:
        enters = x if knobs["hidden_once"] else np.concatenate([hidden, x])

        def gate(name: str) -> tuple[Array, Array]:
            w, u, b = (p[f"{side}.{letter}{name}"] for letter in "WUb")
            return enters @ w + b, hidden @ u

        z = sigmoid(np.add(*gate("z")))
        r = sigmoid(np.add(*gate("r")))
        own, recurrent = gate("h")
        return (1 - z) * hidden + z * np.tanh(own + r * recurrent)

    def shown(ids: Array) -> int:
        """Words of a sentence with its first <eos> (id 0), or all of them without the mask."""
        return list(ids).index(0) + 1 if knobs["mask_padding"] else len(ids)

    size = len(p["encoder.bz"])
    enter = 0 if knobs["hidden_once"] else size
    source_words, target_words = len(p["encoder.Wz"]) - enter, len(p["decoder.by"])
    losses = []
    for source, target in zip(batch["source"], batch["target"], strict=True):
        hidden = np.zeros(size)
        for word in source[: shown(source)]:
            hidden = cell("encoder", hidden, np.eye(source_words)[word])
        previous, total = np.zeros(target_words), 0.0
        for word in target[: shown(target)]:
            hidden = cell("decoder", hidden, previous)
            logit = hidden @ p["decoder.Wy"] + p["decoder.by"]
            if knobs["tanh_logits"]:
                logit = np.tanh(logit)
            total -= np.log(softmax(logit)[word])
            previous = np.eye(target_words)[word]
        losses.append(total)
    return float(np.mean(losses))


def basis_fit_loss(p: dict[str, Array], batch: dict[str, Array], knobs: dict[str, Any]) -> float:
    """Head by head, sample by sample, basis function by basis function."""
    x, g = batch["x"], batch["g"]
    tokens = np.stack([x, g], axis=1)
    query, key, value = (tokens @ p[f"attention.W{letter}"] for letter in "qkv")
    heads = []
    for head in range(2):
        part = slice(8 * head, 8 * head + 8)
        scores = query[:, part] @ key[:, part].T
        if knobs["attention_scaling"]:
            scores = scores / np.sqrt(8)
        heads.append((softmax(scores) @ value[:, part]).mean(axis=0))
    features = np.concatenate(heads)
    if knobs["layer_norm"]:
        features = (features - features.mean()) / np.sqrt(features.var() + 1e-3)
        features = features * p["norm.gamma"] + p["norm.beta"]
    raw = (features @ p["output.W"] + p["output.b"]).reshape(4, -1)
    low, high = knobs["exponent_bounds"]
    bounded = knobs["exponents"] == "bounded"
    b, c = (low + (high - low) * sigmoid(v) if bounded else softplus(v) for v in raw[1:3])
    a, d = softplus(raw[0]), softplus(raw[3])

    def power(base: float, exponent: float) -> float:
        floor = max(abs(base) if knobs["power"] == "sign_preserving" else base, knobs["epsilon"])
        if knobs["power"] == "pow":
            return float(base**exponent)
        sign = np.sign(base) if knobs["power"] == "sign_preserving" else 1.0
        return float(sign * floor**exponent)

    functions = (np.sin, lambda u: u, np.tanh, lambda u: np.exp(-u))[: len(a)]
    fit = [
        sum(
            d[i] * power(f(power(a[i] * float(point), b[i])), c[i]) for i, f in enumerate(functions)
        )
        for point in x
    ]
    return float(np.mean((np.array(fit) - g) ** 2))


def balanced_loss_loss(
    p: dict[str, Array], batch: dict[str, Array], knobs: dict[str, Any]
) -> float:
    """Row by row, with the branch taken by `if`."""
    y = batch["y"]
    n1, n0 = float(np.sum(y == 1)), float(np.sum(y == 0))
    if knobs["class_weights"] == "inverse_frequency":
        w1, w0 = -n0 / len(y), -n1 / len(y)
    else:
        w1, w0 = -1 / n1, -1 / n0

    def leaky(v: Array) -> Array:
        slope = np.float32(0.2)  # an attribute of the operation, float32 in every dtype
        return np.where(v > 0, v, float(slope) * v)

    hidden = leaky(leaky(batch["x"] @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"])
    probability = sigmoid((hidden @ p["W3"] + p["b3"])[:, 0])
    if not knobs["from_logits"]:
        probability = np.clip(probability, knobs["epsilon"], 1 - knobs["epsilon"])
    total = 0.0
    for label, prob in zip(y, probability, strict=True):
        total += w1 * np.log(prob) if label == 1 else w0 * np.log(1 - prob)
    return float(total / 2)


REFERENCES = {
    "seq2seq": seq2seq_loss,
    "basis_fit": basis_fit_loss,
    "balanced_loss": balanced_loss_loss,
}
SMALL = {"hidden": 5, "seq_len": 10, "batch_size": 4, "initialiser": "glorot"}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("seq2seq", "as-posted", SMALL),
    ("seq2seq", "as-posted", {**SMALL, "from_logits": True, "recurrent_clipping": True}),
    ("seq2seq", "as-posted", {**SMALL, "mask_padding": True}),
    ("seq2seq", "as-posted", {**SMALL, "hidden_once": True, "tanh_logits": False}),
    ("seq2seq", "mended", {"hidden": 5, "batch_size": 4}),
    ("basis_fit", "as-posted", {"x_low": 0.01}),
    ("basis_fit", "as-posted", {"power": "exp_log"}),
    ("basis_fit", "as-posted", {"power": "sign_preserving", "x_low": -1.0}),
    ("basis_fit", "as-posted", {"power": "safe_offset", "layer_norm": True, "functions": 2}),
    ("basis_fit", "as-posted", {"start": "near_one", "attention_initialiser": "glorot_normal"}),
    ("basis_fit", "mended", {"start": "near_one"}),
    ("basis_fit", "mended", {}),
    ("balanced_loss", "as-posted", {}),
    ("balanced_loss", "as-posted", {"form": "product"}),
    ("balanced_loss", "as-posted", {"form": "double_where", "epsilon": 1e-2}),
    ("balanced_loss", "as-posted", {"class_weights": "inverse_frequency", "weight_std": 1.0}),
    ("balanced_loss", "mended", {"batch_size": 64}),
]


def named_parameters(trainer: Any) -> dict[str, Array]:
    return {
        name: parameter.numpy()
        for name, parameter in zip(trainer.program.names, trainer.state.parameters, strict=True)
    }


def batch_of(trainer: Any) -> dict[str, Array]:
    """The batch of step 0, by the program's own rule."""
    from models.training.program import draw_batch  # noqa: PLC0415 (loads TensorFlow)

    train = trainer.program.tensors(trainer.dataset.train)
    size, seed = trainer.config["batch_size"], np.int64(trainer.config["seed"])
    drawn = draw_batch(train, trainer.state.step, size, seed)
    return {name: tensor.numpy() for name, tensor in drawn.items()}


@pytest.mark.parametrize(("name", "preset", "changes"), CASES)
def test_the_loss_is_the_formula(
    name: str, preset: str, changes: dict[str, Any], make_trainer: Any
) -> None:
    trainer = make_trainer(name, preset, dtype="float64", **changes)
    expected = REFERENCES[name](named_parameters(trainer), batch_of(trainer), trainer.config)
    loss = trainer.advance(1).loss[0]
    assert loss == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("seq2seq", {"hidden": 8, "batch_size": 8}),
        ("basis_fit", {}),
        ("balanced_loss", {}),
    ],
)
def test_gradients_of_the_mended_preset_agree_with_differences(
    name: str, changes: dict[str, Any], make_trainer: Any
) -> None:
    """Along a random direction of each parameter, by central differences of fourth order."""
    trainer = make_trainer(name, "mended", dtype="float64", **changes)
    train = trainer.program.tensors(trainer.dataset.train)
    parameters = named_parameters(trainer)
    gradients = trainer.gradients().raw
    generator = np.random.default_rng(0)

    def loss(changed: dict[str, Array]) -> float:
        state = trainer.program.initial_state(changed)
        return float(trainer.program.gradients(state, trainer.config, train).loss)

    h = 1e-6  # small, so that no leaky ReLU changes its side
    for parameter, value in parameters.items():
        direction = generator.normal(size=value.shape)
        at = {k: loss(parameters | {parameter: value + k * h * direction}) for k in (-2, -1, 1, 2)}
        slope = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)
        derivative = np.sum(gradients[parameter] * direction)
        assert derivative == pytest.approx(slope, rel=1e-5, abs=1e-8), parameter
