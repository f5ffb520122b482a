"""The public cases, one test each: operation, phase, mechanism, circumstances, the user's line,
what is reached and a remedy, all taken from the reports and not from what the diagnosis answers.

The line that must be named ends in `# here`.
"""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
import tensorflow as tf

from models.diagnosis import Diagnosis, diagnose


def check(
    diagnosis: Diagnosis,
    loss_fn,
    op: str | set[str],
    phase: str,
    mechanism: str,
    *circumstances: str,
    reaches: set[str] | None = None,
    remedy: str = "",
    marker: str = "# here",
) -> None:
    origin = diagnosis.origins[0]
    assert diagnosis.verdict == "broken"
    assert origin.op in ({op} if isinstance(op, str) else op), str(diagnosis)
    assert origin.phase == phase, str(diagnosis)
    assert origin.mechanism == mechanism, str(diagnosis)
    assert set(origin.circumstances) == set(circumstances), str(diagnosis)
    lines, first = inspect.getsourcelines(loss_fn)
    wanted = [first + i for i, text in enumerate(lines) if text.rstrip().endswith(marker)]
    assert origin.source is not None
    assert (origin.source.file, origin.source.line) in [(__file__, n) for n in wanted], str(
        diagnosis
    )
    if reaches is not None:
        assert set(origin.reaches) == reaches, str(diagnosis)
    assert diagnosis.remedies
    assert remedy in " ".join(diagnosis.remedies), diagnosis.remedies
    assert diagnosis.explanation
    assert str(diagnosis)
    json.dumps(diagnosis.to_dict(), allow_nan=False)


def variable(values, name="v", dtype=tf.float32):
    return tf.Variable(tf.constant(values, dtype), name=name)


def seq2seq(length, std, hidden=256, vocabulary=30, batch=4):
    tf.random.set_seed(0)
    shapes = {
        f"{gate}{kind}": shape
        for kind in "zrh"
        for gate, shape in (("W", (hidden + vocabulary, hidden)), ("U", (hidden, hidden)),
                            ("b", (hidden,)))
    }  # fmt: skip

    def weights(part):
        return {
            f"{part}/{n}": tf.Variable(tf.random.normal(s, stddev=std), name=f"{part}/{n}")
            for n, s in shapes.items()
        }

    encoder, decoder = weights("encoder"), weights("decoder")
    decoder["decoder/Wy"] = tf.Variable(tf.random.normal((hidden, vocabulary), stddev=std))
    decoder["decoder/by"] = tf.Variable(tf.random.normal((vocabulary,), stddev=std))
    rng = np.random.default_rng(0)
    x = tf.one_hot(rng.integers(0, vocabulary, (batch, length)), vocabulary)
    y = tf.one_hot(rng.integers(0, vocabulary, (batch, length)), vocabulary)

    def encode(h, x_t):
        c = tf.concat([h, x_t], 1)
        p = {n.split("/")[1]: v for n, v in encoder.items()}
        z = tf.sigmoid(c @ p["Wz"] + h @ p["Uz"] + p["bz"])  # here
        r = tf.sigmoid(c @ p["Wr"] + h @ p["Ur"] + p["br"])  # here
        k = tf.tanh(c @ p["Wh"] + r * (h @ p["Uh"]) + p["bh"])  # here
        return (1 - z) * h + z * k  # here

    def decode(h, x_t):
        c = tf.concat([h, x_t], 1)
        p = {n.split("/")[1]: v for n, v in decoder.items()}
        z = tf.sigmoid(c @ p["Wz"] + h @ p["Uz"] + p["bz"])
        r = tf.sigmoid(c @ p["Wr"] + h @ p["Ur"] + p["br"])
        k = tf.tanh(c @ p["Wh"] + r * (h @ p["Uh"]) + p["bh"])
        return (1 - z) * h + z * k

    def loss():
        h = tf.zeros((batch, hidden))
        for t in range(length):
            h = encode(h, x[:, t])
        total, previous = 0.0, tf.zeros((batch, vocabulary))
        for t in range(length):
            h = decode(h, previous)
            p = tf.nn.softmax(tf.tanh(h @ decoder["decoder/Wy"] + decoder["decoder/by"]))
            total -= tf.reduce_mean(tf.reduce_sum(y[:, t] * tf.math.log(p), 1))
            previous = y[:, t]
        return total

    return loss, encode, encoder, decoder


def test_a_gradient_explodes_through_time_in_the_encoder():
    loss, encode, encoder, decoder = seq2seq(60, 1.0)
    d = diagnose(loss, encoder | decoder)
    check(d, encode, {"Mul", "MatMul"}, "backward", "backprop-explosion", remedy="Glorot")
    assert set(d.origins[0].reaches) == set(encoder)
    assert all(d.variables[n].finite for n in decoder)
    assert np.isfinite(d.loss)
    assert d.origins[0].growth.factor > 1.5


def test_a_finite_gradients_whose_global_norm_overflows_break_in_the_clip():
    loss, _, encoder, decoder = seq2seq(40, 1.0)

    def clip(gradients):
        return tf.clip_by_global_norm(gradients, 5.0)  # here

    d = diagnose(loss, encoder | decoder, clip)
    check(d, clip, {"L2Loss", "Mul", "Sum", "Square"}, "backward", "clip-overflow")
    assert set(d.origins[0].reaches) >= set(encoder | decoder)


def test_a_small_weights_are_finite():
    loss, _, encoder, decoder = seq2seq(20, 0.06)
    assert diagnose(loss, encoder | decoder).verdict == "finite"


def test_b1_power_at_base_zero_with_learned_exponent():
    x = tf.constant([0.0, 0.25, 0.5, 1.0])
    raw = {n: variable(v, n) for n, v in zip("abcd", (0.3, -0.4, 0.2, 0.5), strict=True)}

    def loss():
        a, b, c, d = (tf.nn.softplus(v) for v in raw.values())
        inner = (a * x) ** b  # here
        f = tf.sin(inner) + 1.0
        return tf.reduce_sum((d * f**c - 1.0) ** 2)

    d = diagnose(loss, raw)
    check(d, loss, "Pow", "backward", "power-of-zero", reaches={"a"}, remedy="tf.maximum(base")
    assert d.origins[0].inputs[0] == 0.0


def test_b2_fractional_power_of_a_negative_base():
    a, c = variable(1.0, "a"), variable(0.8, "c")

    def loss():
        f = tf.sin(3.0 * a * tf.constant([-0.5, 0.5]))
        return tf.reduce_sum(f**c)  # here

    d = diagnose(loss, [a, c])
    check(d, loss, "Pow", "forward", "power-of-negative", reaches={"a", "c", "loss"}, remedy="sign")
    assert d.origins[0].index == (0,)


def test_c1_division_by_the_count_of_an_absent_class():
    rng = np.random.default_rng(1)
    x, y = tf.constant(rng.normal(size=(6, 3)), tf.float32), tf.zeros((6, 1))
    sizes = [(3, 8), (8, 8), (8, 1)]
    w = [variable(rng.normal(size=s) * 0.3, f"W{i}") for i, s in enumerate(sizes)]

    def loss():
        h = tf.nn.relu(tf.nn.relu(x @ w[0]) @ w[1])
        p = tf.clip_by_value(tf.sigmoid(h @ w[2]), 1e-10, 1 - 1e-10)
        n1 = tf.reduce_sum(tf.cast(y == 1, tf.float32))
        n0 = tf.reduce_sum(tf.cast(y == 0, tf.float32))
        w1 = -1 / n1  # here
        w0 = -1 / n0
        return tf.reduce_sum(tf.where(y == 1, w1 * tf.math.log(p), w0 * tf.math.log(1 - p))) / 2

    d = diagnose(loss, w)
    check(
        d, loss, "RealDiv", "forward", "divide-by-zero", "masked-branch", "empty-count",
        reaches={"W0", "W1", "W2"}, remedy="tf.maximum(count",
    )  # fmt: skip


def test_c2_epsilon_lost_in_float32_behind_where():
    w = variable([[40.0]], "w")

    def loss():
        p = tf.clip_by_value(tf.sigmoid(w), 1e-10, 1 - 1e-10)
        kept = tf.math.log(p)
        other = tf.math.log(1 - p)  # here
        return -tf.reduce_sum(tf.where(tf.constant([[True]]), kept, other))

    d = diagnose(loss, [w])
    check(
        d, loss, "Log", "forward", "log-of-zero", "masked-branch", "lost-epsilon",
        reaches={"w"}, remedy="1e-7",
    )  # fmt: skip


def test_c3_unselected_nan_with_a_finite_derivative_is_benign():
    p = variable([1.5], "p")
    d = diagnose(lambda: -tf.reduce_sum(tf.where([True], tf.math.log(p), tf.math.log(1 - p))), [p])
    assert d.verdict == "benign"
    assert not d.origins
    assert d.benign[0].op == "Log"
    assert d.benign[0].mechanism == "log-of-negative"


def test_r01_division_in_the_untaken_branch():
    u = variable([0.0, 2.0], "u")

    def loss():
        return tf.reduce_sum(tf.where(u > 0, 1 / u, 0 * u))  # here

    check(diagnose(loss, [u]), loss, "RealDiv", "forward", "divide-by-zero", "masked-branch",
          reaches={"u"}, remedy="two selects")  # fmt: skip


@pytest.mark.parametrize(
    ("x", "op", "mechanism"), [(0.0, "RealDiv", "divide-by-zero"), (-120.0, "Exp", "exp-overflow")]
)
def test_r03_removable_singularity(x, op, mechanism):
    v = variable([x], "x")

    def loss():
        g = 1 / (1 - tf.exp(-v)) - 1 / v  # here
        return tf.reduce_sum(tf.where(tf.abs(v) < 0.1, 0.5 + v / 12, g))

    d = diagnose(loss, [v])
    check(d, loss, op, "forward", mechanism, "masked-branch", reaches={"x"}, remedy="two selects")
    assert np.isfinite(d.loss)


def test_r04_distance_of_equal_embeddings():
    w = variable(np.eye(3), "W")
    a, b = tf.constant([[1.0, 2.0, 3.0]]), tf.constant([[1.0, 2.0, 3.0]])

    def loss():
        return tf.reduce_sum(tf.sqrt(tf.reduce_sum((a @ w - b @ w) ** 2, 1)))  # here

    check(diagnose(loss, [w]), loss, "SqrtGrad", "backward", "root-at-zero", reaches={"W"},
          remedy="inside the root")  # fmt: skip


def test_r07_std_of_equal_values():
    x = variable([3.0, 3.0, 3.0], "x")

    def loss():
        return tf.math.reduce_std(x)  # here

    check(diagnose(loss, [x]), loss, "SqrtGrad", "backward", "root-at-zero", reaches={"x"})


def test_r07_standardised_equal_values():
    x = variable([3.0, 3.0, 3.0], "x")

    def loss():
        mean, v = tf.reduce_mean(x), tf.math.reduce_variance(x)
        return tf.reduce_sum((x - mean) / tf.sqrt(v))  # here

    check(diagnose(loss, [x]), loss, "RealDiv", "forward", "zero-over-zero", reaches={"x", "loss"})


def test_r09_log_of_an_underflowing_softmax():
    z = variable([[60.0, -60.0]], "z")
    y = tf.constant([[1.0, 0.0]])

    def loss():
        p = tf.nn.softmax(z)
        return -tf.reduce_sum(y * tf.math.log(p))  # here

    check(diagnose(loss, [z]), loss, "Log", "forward", "log-of-zero", "masked-branch",
          reaches={"z", "loss"}, remedy="logits")  # fmt: skip


def test_r10_log_of_one_minus_a_saturated_sigmoid():
    z = variable([20.0], "z")

    def loss():
        return -tf.reduce_sum(tf.math.log(1 - tf.sigmoid(z)))  # here

    check(diagnose(loss, [z]), loss, "Log", "forward", "log-of-zero", reaches={"z", "loss"},
          remedy="logits")  # fmt: skip


def test_r12_learnable_exponent_at_base_zero():
    s, e = variable(1.0, "s"), variable(0.5, "e")

    def loss():
        return tf.reduce_sum((s * tf.constant([0.0, 2.0])) ** e)  # here

    d = diagnose(loss, [s, e])
    check(d, loss, "Pow", "backward", "power-of-zero", reaches={"s"}, remedy="tf.maximum(base")
    assert d.variables["e"].finite


@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_r14_focal_factor(gamma):
    z = variable([19.0], "z")

    def loss():
        p = tf.sigmoid(z)
        factor = (1 - p) ** gamma  # here
        return -tf.reduce_sum(factor * tf.math.log(p + 1e-3))

    d = diagnose(loss, [z])
    if gamma == 0.0 and d.verdict == "finite":  # 0 · 0**(−1): the factor γ = 0 comes first
        return
    check(d, loss, "Pow", "backward", "power-of-zero", reaches={"z"})


def test_r16_mean_over_an_empty_mask():
    w = variable([1.0, 2.0], "w")
    mask = tf.constant([0.0, 0.0])

    def loss():
        return tf.reduce_sum(mask * w**2) / tf.reduce_sum(mask)  # here

    check(diagnose(loss, [w]), loss, "RealDiv", "forward", "zero-over-zero", "empty-count",
          reaches={"w", "loss"}, remedy="tf.maximum(count")  # fmt: skip


def test_r19_naive_softplus_and_softmax():
    x = variable([100.0, 1.0], "x")

    def loss():
        return tf.reduce_sum(tf.math.log(1 + tf.exp(x)))  # here

    def naive():
        e = tf.exp(x)  # here
        return tf.reduce_sum((e / tf.reduce_sum(e)) ** 2)

    for fn in (loss, naive):
        check(diagnose(fn, [x]), fn, "Exp", "forward", "exp-overflow", reaches={"x", "loss"},
              remedy="softplus")  # fmt: skip


def test_r23_float16_square_overflows_with_a_finite_gradient():
    h = variable([600.0, 1.0], "h", tf.float16)

    def loss():
        return tf.reduce_sum(h**2)  # here

    d = diagnose(loss, [h])
    check(d, loss, {"Pow", "Square"}, "forward", "product-overflow", reaches={"loss"},
          remedy="float32")  # fmt: skip
    assert d.variables["h"].finite


def test_r23_float16_overflow_by_the_loss_scale():
    w = variable([1e-3], "w", tf.float16)

    def loss():
        y = tf.reduce_sum(w * tf.constant([50.0], tf.float16))  # here
        return y * tf.constant(2.0**15, tf.float16)

    d = diagnose(loss, [w])
    check(d, loss, "Mul", "backward", "product-overflow", "loss-scale", reaches={"w"},
          remedy="dynamic")  # fmt: skip
    assert np.isfinite(d.loss)


def test_r25_acos_at_and_beyond_the_edge():
    w = variable([1.0, 0.0], "w")
    a = tf.constant([1.0, 0.0])

    def loss():
        c = tf.reduce_sum(a * w) / (tf.norm(a) * tf.norm(w))
        return tf.acos(c)  # here

    def beyond():
        return tf.acos(tf.reduce_sum(a * w) * 1.0000002)  # here

    check(diagnose(loss, [w]), loss, {"Reciprocal", "RealDiv"}, "backward",
          "inverse-function-edge", reaches={"w"}, remedy="atan2")  # fmt: skip
    check(diagnose(beyond, [w]), beyond, "Acos", "forward", "inverse-function-domain",
          reaches={"w", "loss"})  # fmt: skip


def test_r27_running_variance_of_a_single_element():
    scale = variable([1.0, 1.0], "scale")
    moving = tf.Variable([1.0, 1.0], name="moving_variance", trainable=False)
    x = tf.constant([[[[1.0, 2.0]]]])

    def loss():
        mean, var = tf.nn.moments(x, [0, 1, 2])
        n = tf.cast(tf.size(x) / 2, tf.float32)
        unbiased = var * (n / (n - 1))  # here
        moving.assign(0.9 * moving + 0.1 * unbiased)
        return tf.reduce_sum(scale * (x - mean) * tf.math.rsqrt(var + 1e-3))

    d = diagnose(loss, [scale])
    assert np.isfinite(d.loss)
    assert d.variables["scale"].finite
    check(d, loss, "RealDiv", "forward", "divide-by-zero", reaches={"moving_variance"})
    np.testing.assert_array_equal(moving.numpy(), [1.0, 1.0])


def test_r29_vae_log_variance():
    lv = variable([95.0], "log_var")

    def kl():
        return -0.5 * tf.reduce_sum(1 + lv - tf.exp(lv))  # here

    check(diagnose(kl, [lv]), kl, "Exp", "forward", "exp-overflow", reaches={"log_var", "loss"},
          remedy="Clip the exponent")  # fmt: skip
    lv2 = variable([180.0], "log_var")

    def sampled():
        std = tf.exp(0.5 * lv2)  # here
        return tf.reduce_sum(tf.tanh(std * 0.3))

    d = diagnose(sampled, [lv2])
    check(d, sampled, "Exp", "forward", "exp-overflow", "masked-branch", reaches={"log_var"})


def test_r30_entropy_of_an_underflowing_softmax():
    z = variable([50.0, -60.0], "z")

    def loss():
        p = tf.nn.softmax(z)
        return -tf.reduce_sum(p * tf.math.log(p))  # here

    d = diagnose(loss, [z])
    check(d, loss, "Log", "forward", "log-of-zero", reaches={"z", "loss"}, remedy="xlogy")


@pytest.mark.parametrize("additive", [False, True])
def test_r33_attention_with_a_fully_masked_row(additive):
    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=(3, 4)), tf.float32)
    w = {n: variable(rng.normal(size=(4, 4)), n) for n in ("Wq", "Wk", "Wv")}
    mask = tf.constant([[True] * 3, [False] * 3, [True] * 3])

    def loss():
        q, k, v = x @ w["Wq"], x @ w["Wk"], x @ w["Wv"]
        s = q @ tf.transpose(k)
        minus = tf.fill((3, 3), -np.inf)
        s = s + tf.where(mask, 0.0, -np.inf) if additive else tf.where(mask, s, minus)
        a = tf.nn.softmax(s)  # here
        return tf.reduce_sum(tf.gather(a @ v, [0, 2]) ** 2)

    d = diagnose(loss, w)
    reached = {"Wq", "Wk", "Wv"} if additive else {"Wv"}
    check(d, loss, "Softmax", "forward", "all-masked-softmax", reaches=reached, remedy="-1e9")
    assert np.isfinite(d.loss)


def test_r35_nan_in_the_data():
    x = np.ones((4, 3), np.float32)
    x[1, 2] = np.nan
    w = variable(np.ones((3, 1)), "w")
    data = tf.constant(x)

    def loss():
        return tf.reduce_mean((data @ w) ** 2)  # here

    d = diagnose(loss, [w])
    check(d, loss, "MatMul", "forward", "bad-input", reaches={"w", "loss"}, remedy="Clean the data")
    assert d.origins[0].index == (1, 2)
    assert "row 1, column 2" in d.explanation


def test_r36_learning_rate_explosion_is_told_from_the_history():
    x = tf.constant([10.0, 20.0, 30.0, 40.0])
    w, history = variable(0.0, "w"), []

    def loss():
        return tf.reduce_mean((w * x - 2 * x) ** 2)  # here

    for _ in range(60):
        history.append({"w": float(abs(w))})
        with tf.GradientTape() as tape:
            value = loss()
        if not np.isfinite(value):
            break
        w.assign_sub(0.1 * tape.gradient(value, w))
    d = diagnose(loss, [w], history=history)
    overflowing = {"Pow", "Sum", "Mean", "Square"}
    check(d, loss, overflowing, "forward", "product-overflow", "step-too-large",
          remedy="learning rate")  # fmt: skip


@pytest.mark.parametrize("values", [[1e20, 1.0], [np.inf, 1.0]])
def test_r37_clip_by_global_norm(values):
    a, b = variable([1.0, 1.0], "a"), variable([2.0], "b")
    factor = tf.constant(values)

    def loss():
        return tf.reduce_sum(a * factor) + tf.reduce_sum(b)

    def clip(gradients):
        return tf.clip_by_global_norm(gradients, 1.0)[0]  # here

    d = diagnose(loss, [a, b], clip)
    check(d, clip, {"Sub", "L2Loss"}, "backward", "clip-overflow", remedy="before clipping")
    assert set(d.origins[0].reaches) >= {"a", "b"}


def test_r39_repeated_singular_values_are_not_nan():
    a = variable(np.eye(2), "A")

    def loss():
        return tf.reduce_sum(tf.linalg.svd(a)[1][:, 0])

    assert diagnose(loss, [a]).verdict in ("finite", "benign")


def test_r41_masked_log_of_a_negative_number():
    alpha, weight = variable(0.9, "alpha"), variable(0.5, "weight")
    x = tf.constant([-1.0, 2.0])

    def loss():
        inside = (alpha - 1) * tf.math.log(x) - x  # here
        return -tf.reduce_sum(weight * tf.where(x > 0, inside, -50.0))

    d = diagnose(loss, [alpha, weight])
    check(d, loss, "Log", "forward", "log-of-negative", "masked-branch", reaches={"alpha"},
          remedy="two selects")  # fmt: skip


def test_r41_lgamma_at_a_pole():
    k = variable(7.0, "k")

    def loss():
        return tf.math.lgamma(2.0 - k + 1.0)  # here

    check(diagnose(loss, [k]), loss, "Lgamma", "forward", "special-function-pole", remedy="pole")


def test_r48_finite_eagerly_and_nan_under_xla():
    u = variable([0.0, 4.0], "u")

    @tf.function(jit_compile=True)
    def compiled(x):
        return tf.reduce_sum(tf.where(x > 1, tf.sqrt(x), 2 * x))  # here

    def loss():
        return compiled(u)

    d = diagnose(loss, [u])
    check(d, compiled.python_function, "SqrtGrad", "backward", "root-at-zero", "masked-branch",
          reaches={"u"}, remedy="two selects")  # fmt: skip
