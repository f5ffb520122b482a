"""A hand-written GRU encoder-decoder whose encoder gradients overflow on the way back.

As posted: English → French, sentences padded with <eos> to one SEQ_LEN on both sides, one-hot
input, weights from a unit normal. `x = concat([hidden, x_t])` and the gates add `hidden U`, so the
hidden state enters each gate twice. The gradient passes the recurrent Jacobian about 2·SEQ_LEN
times on its way to the first encoder steps and grows at each, beyond 3.4e38 inside the encoder;
Inf − Inf and 0 · Inf (saturated gates) are NaN. The decoder, half as far away, stays finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import BadInput
from ..inputs.sentence_pairs import (
    EOS,
    Vocabulary,
    decode,
    default_pairs,
    encode,
    fitting,
    read_pairs,
)
from ..lazy import tf
from .common import common_knobs, std_knob
from .contract import (
    Array,
    Dataset,
    FirstMap,
    Listing,
    Outcome,
    Preset,
    Remedy,
    Scenario,
    Screen,
    Source,
    Tensors,
)
from .knobs import Choice, Config, Number, Toggle

GATES = ("z", "r", "h")
PROBE_SEEN, PROBE_UNSEEN = 24, 8
FEWEST_PAIRS = 8


def load(config: Config, content: bytes | None) -> Dataset:
    length, limit = int(config["seq_len"]), int(config["vocabulary"])
    everything = default_pairs() if content is None else read_pairs(content, max_words=length - 1)
    pairs = fitting(everything, length)
    if len(pairs) < FEWEST_PAIRS:
        raise BadInput(
            f"Only {len(pairs)} of {len(everything)} pairs have fewer than {length} words on each "
            "side; raise SEQ_LEN or bring shorter sentences.",
            field="seq_len",
        )
    order = np.random.default_rng(int(config["seed"])).permutation(len(pairs))
    unseen = min(PROBE_UNSEEN, len(pairs) // 8)
    split = len(pairs) - unseen
    train = [pairs[i] for i in order[:split]]
    probe = train[:PROBE_SEEN] + [pairs[i] for i in order[split:]]
    source = Vocabulary.build((pair.source for pair in train), limit)
    target = Vocabulary.build((pair.target for pair in train), limit)
    return Dataset(
        train={
            "source": encode([p.source for p in train], source, length),
            "target": encode([p.target for p in train], target, length),
        },
        probe={"source": encode([p.source for p in probe], source, length)},
        description=f"{len(train)} sentence pairs, {unseen} held out, {len(source)} English and "
        f"{len(target)} French words",
        facts={
            "pairs": probe,
            "seen": min(PROBE_SEEN, split),
            "target": target,
            "sizes": (len(source), len(target)),
        },
    )


def initialise(
    config: Config, dataset: Dataset, generator: np.random.Generator
) -> dict[str, Array]:
    hidden = int(config["hidden"])
    source_words, target_words = dataset.facts["sizes"]

    def weights(rows: int, columns: int) -> Array:
        return draw(config, generator, rows, columns)

    parameters: dict[str, Array] = {}
    for side, words in (("encoder", source_words), ("decoder", target_words)):
        enters = words if config["hidden_once"] else hidden + words
        for gate in GATES:
            parameters[f"{side}.W{gate}"] = weights(enters, hidden)
            parameters[f"{side}.U{gate}"] = weights(hidden, hidden)
            parameters[f"{side}.b{gate}"] = np.zeros(hidden)
    parameters["decoder.Wy"] = weights(hidden, target_words)
    parameters["decoder.by"] = np.zeros(target_words)
    return parameters


def draw(config: Config, generator: np.random.Generator, rows: int, columns: int) -> Array:
    """A weight matrix, float64 [rows, columns], by the knob `initialiser`."""
    how = config["initialiser"]
    if how == "glorot":  # Glorot & Bengio 2010, uniform
        limit = np.sqrt(6.0 / (rows + columns))
        return generator.uniform(-limit, limit, (rows, columns))
    if how == "orthogonal":  # Saxe et al. 2014
        tall = generator.normal(size=(max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(tall)
        q = q * np.sign(np.diag(r))
        return q if rows >= columns else q.T
    std = config["weight_std"] if how == "std" else 1.0
    return generator.normal(0.0, std, (rows, columns))


def clip_on_the_way_back(value: Any, limit: Any) -> Any:
    """`value` unchanged; its gradient clipped to [−limit, limit]."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def unchanged(value: Any, limit: Any) -> Any:
        def backward(gradient: Any) -> Any:
            return tf.clip_by_value(gradient, -limit, limit), None

        return tf.identity(value), backward

    return unchanged(value, limit)


def gru_step(
    parameters: Tensors, side: str, hidden: Any, word: Any, knobs: Mapping[str, Any]
) -> Any:
    """The next hidden state [batch, hidden] after one word, one-hot [batch, words]."""
    x = word if knobs["hidden_once"] else tf.concat([hidden, word], axis=1)

    def weight(name: str) -> Any:
        return parameters[f"{side}.{name}"]

    def add_bias(value: Any, name: str) -> Any:
        return tf.nn.bias_add(value, weight(name))  # one operation on the way back, + has seven

    z = tf.sigmoid(add_bias(x @ weight("Wz") + hidden @ weight("Uz"), "bz"))
    r = tf.sigmoid(add_bias(x @ weight("Wr") + hidden @ weight("Ur"), "br"))
    candidate = tf.tanh(add_bias(x @ weight("Wh") + r * (hidden @ weight("Uh")), "bh"))
    hidden = (1 - z) * hidden + z * candidate
    if knobs["recurrent_clipping"]:
        hidden = clip_on_the_way_back(hidden, knobs["recurrent_limit"])
    return hidden


def not_padding(ids: Any) -> Any:
    """bool [batch, SEQ_LEN]: the words and the first <eos> of each sentence."""
    ends = tf.cumsum(tf.cast(ids == EOS, tf.int32), axis=1, exclusive=True)
    return ends == 0


def nudges(parameters: Tensors, batch: Tensors, knobs: Mapping[str, Any]) -> dict[str, Any]:
    """Zeros [SEQ_LEN, batch, hidden] for the hidden states of encoder and decoder."""
    rows, length = batch["source"].shape
    hidden = parameters["encoder.bz"]
    shape = [length, rows, hidden.shape[0]]
    return {side: tf.zeros(shape, hidden.dtype) for side in ("encoder", "decoder")}


def encode_sentence(
    parameters: Tensors, ids: Any, knobs: Mapping[str, Any], nudge: Any = None
) -> Any:
    """Last hidden state [batch, hidden] over ids [batch, SEQ_LEN]."""
    words = parameters["encoder.Wz"].shape[0] - (
        0 if knobs["hidden_once"] else parameters["encoder.bz"].shape[0]
    )
    dtype = parameters["encoder.bz"].dtype
    inputs = tf.one_hot(tf.transpose(ids), words, dtype=dtype)
    keep = tf.transpose(not_padding(ids))[:, :, None]

    def step(t: Any, hidden: Any) -> Any:
        new = gru_step(parameters, "encoder", hidden, tf.gather(inputs, t), knobs)
        if knobs["mask_padding"]:
            new = tf.where(tf.gather(keep, t), new, hidden)
        return t + 1, new if nudge is None else new + tf.gather(nudge, t)

    start = tf.zeros([tf.shape(ids)[0], parameters["encoder.bz"].shape[0]], dtype)
    start.set_shape([None, parameters["encoder.bz"].shape[0]])
    length = ids.shape[1]
    return tf.while_loop(
        lambda t, _: t < length, step, (tf.constant(0), start), maximum_iterations=length
    )[1]


def output(parameters: Tensors, hidden: Any, knobs: Mapping[str, Any]) -> Any:
    """Logits [batch, words] of the next word."""
    logit = tf.nn.bias_add(hidden @ parameters["decoder.Wy"], parameters["decoder.by"])
    return tf.tanh(logit) if knobs["tanh_logits"] else logit


def cross_entropy(logit: Any, truth: Any, knobs: Mapping[str, Any]) -> Any:
    """Shape [batch]; `truth` is one-hot."""
    if knobs["from_logits"]:
        return tf.nn.softmax_cross_entropy_with_logits(truth, logit)
    return -tf.reduce_sum(truth * tf.math.log(tf.nn.softmax(logit)), axis=1)


def loss(parameters: Tensors, batch: Tensors, knobs: Mapping[str, Any]) -> Any:
    """Cross-entropy summed over SEQ_LEN (masked: over the sentence), averaged over the batch."""
    hidden = encode_sentence(parameters, batch["source"], knobs, batch.get("encoder"))
    ids, nudge = batch["target"], batch.get("decoder")
    truth = tf.one_hot(tf.transpose(ids), parameters["decoder.by"].shape[0], dtype=hidden.dtype)
    keep = tf.cast(tf.transpose(not_padding(ids)), hidden.dtype)

    def step(t: Any, hidden: Any, previous: Any, total: Any) -> Any:
        hidden = gru_step(parameters, "decoder", hidden, previous, knobs)
        if nudge is not None:
            hidden = hidden + tf.gather(nudge, t)
        word = tf.gather(truth, t)
        error = cross_entropy(output(parameters, hidden, knobs), word, knobs)
        if knobs["mask_padding"]:
            error = error * tf.gather(keep, t)
        return t + 1, hidden, word, total + error

    length = ids.shape[1]
    start = (tf.constant(0), hidden, tf.zeros_like(truth[0]), tf.zeros_like(hidden[:, 0]))
    *_, total = tf.while_loop(lambda t, *_: t < length, step, start, maximum_iterations=length)
    return tf.reduce_mean(total)


def predict(parameters: Tensors, probe: Tensors, knobs: Mapping[str, Any]) -> dict[str, Any]:
    """Greedy translation, int32 [sentences, SEQ_LEN]: each word is fed back as the next input."""
    hidden = encode_sentence(parameters, probe["source"], knobs)
    words, length = parameters["decoder.by"].shape[0], probe["source"].shape[1]
    chosen = tf.TensorArray(tf.int32, size=length, element_shape=[None])

    def step(t: Any, hidden: Any, previous: Any, chosen: Any) -> Any:
        hidden = gru_step(parameters, "decoder", hidden, previous, knobs)
        word = tf.argmax(output(parameters, hidden, knobs), axis=1, output_type=tf.int32)
        return t + 1, hidden, tf.one_hot(word, words, dtype=hidden.dtype), chosen.write(t, word)

    nothing = tf.zeros([tf.shape(hidden)[0], words], hidden.dtype)
    nothing.set_shape([None, words])
    start = (tf.constant(0), hidden, nothing, chosen)
    *_, chosen = tf.while_loop(lambda t, *_: t < length, step, start)
    return {"translation": tf.transpose(chosen.stack())}


def outcome(predictions: Mapping[str, Array], dataset: Dataset, config: Config) -> Outcome:
    rows, good = [], []
    seen = dataset.facts["seen"]
    for i, (pair, ids) in enumerate(
        zip(dataset.facts["pairs"], predictions["translation"], strict=True)
    ):
        truth, guess = (
            " ".join(pair.target).replace("' ", "'"),
            decode(ids, dataset.facts["target"]),
        )
        rows.append((" ".join(pair.source), truth, guess, "yes" if i < seen else "no"))
        good.append(guess == truth)
    right = np.array(good, float)
    return Outcome(
        metrics={
            "training sentences right": float(right[:seen].mean()),
            "unseen sentences right": float(right[seen:].mean()) if len(right) > seen else 0.0,
        },
        panels=(
            Listing(
                "Translations",
                ("English", "French", "translation", "seen in training"),
                tuple(rows),
                tuple(good),
            ),
        ),
    )


KNOBS = (
    Toggle(
        name="from_logits",
        label="Loss from logits",
        group="numerics",
        default=False,
        help="Cross-entropy computed from the logits instead of the log of a softmax.",
    ),
    Toggle(
        name="recurrent_clipping",
        label="Clip inside the recurrence",
        group="clipping",
        default=False,
        help="Clips the gradient of the hidden state at every time step on the way back.",
    ),
    Number(
        name="recurrent_limit",
        label="Limit inside the recurrence",
        group="clipping",
        default=1.0,
        low=1e-3,
        high=1e3,
        scale="log",
        shown_if={"recurrent_clipping": (True,)},
        help="Each entry of the hidden state's gradient is clipped to ± this.",
    ),
    Choice(
        name="initialiser",
        label="Initialiser",
        group="model",
        default="unit_normal",
        options={
            "unit_normal": "N(0, 1)",
            "glorot": "Glorot",
            "orthogonal": "orthogonal",
            "std": "N(0, std²)",
        },
        stage="data",
        help="How the weight matrices start; biases start at 0.",
    ),
    std_knob(0.1, {"initialiser": ("std",)}),
    Number(
        name="hidden",
        label="Hidden size",
        group="model",
        default=64,
        low=4,
        high=256,
        integer=True,
        stage="data",
        unit="units",
        help="Units of the hidden state, in encoder and decoder.",
    ),
    Toggle(
        name="hidden_once",
        label="Hidden enters once",
        group="model",
        default=False,
        help="As posted the hidden state enters each gate through W and again through U; on, only "
        "through U.",
    ),
    Toggle(
        name="tanh_logits",
        label="tanh on the logits",
        group="model",
        default=True,
        help="As posted. It bounds the logits to [−1, 1], so no word can get a probability near 1.",
    ),
    Number(
        name="seq_len",
        label="SEQ_LEN",
        group="data",
        default=100,
        low=6,
        high=200,
        integer=True,
        stage="data",
        unit="steps",
        help="Every sentence is padded with <eos> to this many words, on both sides.",
    ),
    Toggle(
        name="mask_padding",
        label="Mask the padding",
        group="data",
        default=False,
        help="The hidden state passes the padding unchanged, and only the sentence counts in the "
        "loss.",
    ),
    Number(
        name="vocabulary",
        label="Vocabulary",
        group="data",
        default=200,
        low=20,
        high=2000,
        integer=True,
        stage="data",
        unit="words",
        help="The most frequent words of each language; others become <unk>.",
    ),
    *common_knobs(learning_rate=0.01, batch_size=8),
)

SCENARIO = Scenario(
    name="seq2seq",
    title="Seq2seq",
    story="The loss is finite, every gradient of the encoder is NaN, every gradient of the decoder "
    "is fine.",
    question="At which time step does the gradient leave float32?",
    knobs=KNOBS,
    presets=(
        Preset(
            "as-posted",
            "As posted",
            "Unit-normal weights, hidden state entering twice, SEQ_LEN 100 padded with <eos>.",
        ),
        Preset(
            "mended",
            "Mended",
            "Glorot weights, hidden state entering once, padding masked, free logits, Adam.",
            {
                "initialiser": "glorot",
                "hidden_once": True,
                "mask_padding": True,
                "tanh_logits": False,
                "from_logits": True,
                "clipping": "global_norm",
                "clip_threshold": 5.0,
                "optimizer": "adam",
                "seq_len": 12,
                "batch_size": 32,
            },
        ),
    ),
    remedies=(
        Remedy(
            "glorot",
            "Glorot initialiser",
            {"initialiser": "glorot"},
            "The factor per time step is about 1.",
            addresses=("backprop-explosion",),
        ),
        Remedy(
            "orthogonal",
            "Orthogonal initialiser",
            {"initialiser": "orthogonal"},
            "A step neither grows nor shrinks the gradient.",
            addresses=("backprop-explosion",),
        ),
        Remedy(
            "mask_padding",
            "Mask the padding",
            {"mask_padding": True},
            "The gradient passes as many steps as the sentence has words.",
            addresses=("backprop-explosion",),
        ),
        Remedy(
            "recurrent_clipping",
            "Clip at every step on the way back",
            {"recurrent_clipping": True, "recurrent_limit": 1.0},
            "The growth is cut before it can add up.",
            addresses=("backprop-explosion",),
        ),
        Remedy(
            "short",
            "SEQ_LEN 20",
            {"seq_len": 20},
            "Fewer factors.",
            answers_another_question=True,
        ),
        Remedy(
            "hidden_once",
            "Hidden enters once",
            {"hidden_once": True},
            "A smaller factor per step.",
        ),
        Remedy("float64", "float64", {"dtype": "float64"}, "Overflow only beyond 1.8e308."),
        Remedy(
            "from_logits",
            "Loss from logits",
            {"from_logits": True},
            "Said to avoid log 0; here no probability is 0.",
        ),
        Remedy(
            "global_norm",
            "Clip by global norm 5",
            {"clipping": "global_norm", "clip_threshold": 5.0},
            "Said to stop the explosion; it comes after the NaN and spreads it over all.",
        ),
        Remedy(
            "clip_value",
            "Clip by value 1",
            {"clipping": "value", "clip_threshold": 1.0},
            "Said to stop the explosion; NaN stays NaN.",
        ),
        Remedy("small_rate", "Learning rate 1e-4", {"learning_rate": 1e-4}, "Smaller steps."),
    ),
    screens=(
        Screen(
            "Half of the network is NaN",
            "A hand-written encoder-decoder translates English into French. The loss is finite, "
            "every gradient of the decoder is fine, every gradient of the encoder is NaN.",
            "health",
        ),
        Screen(
            "A factor per time step",
            "On the way back the gradient is multiplied at every time step. It passes the decoder "
            "first and grows; inside the encoder it leaves float32, and Inf − Inf is NaN. Open "
            "“Through time” to see where.",
            "diagnosis",
        ),
        Screen(
            "What people advise",
            "Clip the gradients, by value or by global norm; take smaller steps. All of it comes "
            "after the overflow. The global norm even spreads the NaN to the decoder.",
            "remedies",
            remedies=("global_norm", "clip_value", "small_rate"),
        ),
        Screen(
            "What works",
            "Weights with which a time step neither grows nor shrinks the gradient, fewer time "
            "steps on the way, or clipping at each of them.",
            "remedies",
            remedies=("glorot", "orthogonal", "mask_padding", "recurrent_clipping"),
        ),
        Screen(
            "It translates",
            "Glorot weights, the padding masked, logits without tanh: the same architecture learns "
            "its sentences within a minute.",
            "outcome",
            preset="mended",
        ),
    ),
    source=Source(
        "Sentence pairs",
        ("txt", "tsv", "csv"),
        "One pair a line: English, a tab, French. At least 8 pairs, at most 20 MB.",
    ),
    load=load,
    initialise=initialise,
    loss=loss,
    predict=predict,
    outcome=outcome,
    nudges=nudges,
    reference={"from_logits": True, "recurrent_clipping": False},
    metric="training sentences right",
    first_map=FirstMap(
        ("weight_std=0.1:2:log:16", "learning_rate=1e-3:10:log:12"),
        steps=4,
        knobs={
            "initialiser": "std",
            "hidden": 64,
            "seq_len": 90,
            "vocabulary": 60,
            "batch_size": 2,
        },
    ),
)
