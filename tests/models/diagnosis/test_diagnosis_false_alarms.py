"""Healthy programs that hold non-finite intermediates on purpose: none may raise an alarm, and
their gradients must be right."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from models.diagnosis import diagnose

PROGRAMS = {}


def healthy(build):
    PROGRAMS[build.__name__] = build
    return build


def var(values, dtype=tf.float32, **kwargs):
    return tf.Variable(tf.constant(values, dtype), **kwargs)


@healthy
def attention_with_additive_mask():
    w = var(np.eye(3))
    x = tf.constant(np.arange(9.0).reshape(3, 3) / 9, tf.float32)
    mask = tf.where(tf.linalg.band_part(tf.ones((3, 3)), -1, 0) > 0, 0.0, -np.inf)
    return lambda: tf.reduce_sum((tf.nn.softmax(x @ w @ tf.transpose(x) + mask) @ x) ** 2), [w]


@healthy
def attention_with_selected_mask():
    w = var(np.eye(3))
    x = tf.constant(np.arange(9.0).reshape(3, 3) / 9, tf.float32)
    keep = tf.linalg.band_part(tf.ones((3, 3)), -1, 0) > 0
    return lambda: tf.reduce_sum(
        (tf.nn.softmax(tf.where(keep, x @ w @ tf.transpose(x), -np.inf)) @ x) ** 2
    ), [w]


@healthy
def mask_from_log_of_zero():
    w = var([1.0, 2.0, 3.0])
    mask = tf.constant([1.0, 0.0, 1.0])
    return lambda: tf.nn.softmax(w + tf.math.log(mask))[0], [w]


@healthy
def ctc():
    z = var(np.linspace(-1, 1, 24).reshape(6, 1, 4))
    return lambda: tf.reduce_sum(
        tf.nn.ctc_loss(
            labels=tf.constant([[1, 2, 2]]),
            logits=z,
            label_length=tf.constant([3]),
            logit_length=tf.constant([6]),
            blank_index=0,
        )
    ), [z]


@healthy
def logsumexp_with_some_minus_infinity():
    w = var([1.0, 2.0, 3.0])
    return lambda: tf.reduce_logsumexp(tf.where([True, False, True], w, -np.inf)), [w]


@healthy
def untaken_log_of_a_negative_number():
    w = var([1.5, 0.5])
    return lambda: tf.reduce_sum(tf.where(w < 1, tf.math.log(1 - w), w)), [w]


@healthy
def untaken_division_of_constants():
    w = var([1.0, 2.0])
    c = tf.constant([0.0, 2.0])
    return lambda: tf.reduce_sum(w * tf.where(c > 0, 1 / c, 0.0)), [w]


@healthy
def segment_mean_with_gaps():
    w = var([1.0, 2.0, 3.0])
    return lambda: tf.reduce_sum(tf.math.segment_mean(w * w, tf.constant([0, 0, 3]))), [w]


@healthy
def unsorted_segment_max_with_gaps():
    w = var([1.0, 2.0, 3.0])
    return lambda: tf.reduce_sum(
        tf.gather(tf.math.unsorted_segment_max(w * w, tf.constant([0, 0, 3]), 5), [0, 3])
    ), [w]


@healthy
def dynamic_loss_scaling():
    w = var([1e-3], tf.float16)
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1), initial_scale=2.0**15
    )
    optimizer.build([w])
    return lambda: optimizer.scale_loss(tf.reduce_sum(w * tf.constant([50.0], tf.float16))), [w]


@healthy
def dynamic_loss_scaling_with_room():
    w = var([1e-3], tf.float16)
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=8.0)
    optimizer.build([w])
    return lambda: optimizer.scale_loss(tf.reduce_sum(w * tf.constant([50.0], tf.float16))), [w]


@healthy
def divide_no_nan():
    w = var([1.0, 2.0])
    return lambda: tf.reduce_sum(tf.math.divide_no_nan(w, tf.constant([0.0, 2.0]))), [w]


@healthy
def xlogy_at_zero():
    w = var([0.0, 0.5])
    return lambda: tf.reduce_sum(tf.math.xlogy(tf.constant([0.0, 1.0]), w)), [w]


@healthy
def double_where():
    w = var([0.0, 2.0])

    def loss():
        safe = tf.where(w > 0, w, 1.0)
        return tf.reduce_sum(tf.where(w > 0, 1 / safe, 0.0))

    return loss, [w]


@healthy
def infinite_weight_stopped():
    w = var([1.0, 2.0])

    def loss():
        distance = tf.constant([0.0, 4.0])
        weight = tf.stop_gradient(1 / (1 + 1 / distance))
        return tf.reduce_sum(weight * w**2)

    return loss, [w]


@healthy
def saturating_gate_of_infinity():
    w = var([1.0, 2.0])
    far = tf.constant([np.inf, -np.inf])
    return lambda: tf.reduce_sum(tf.sigmoid(far) * w), [w]


@healthy
def running_maximum_starts_at_minus_infinity():
    w = var([1.0, 2.0])
    best = tf.Variable(-np.inf, trainable=False)

    def loss():
        best.assign(tf.maximum(best, tf.reduce_max(w)))
        return tf.reduce_sum(w**2)

    return loss, [w]


@healthy
def beam_search_pads_with_minus_infinity():
    w = var([[1.0, 2.0, 0.5]])

    def loss():
        scores = tf.concat([tf.nn.log_softmax(w), tf.fill((1, 2), -np.inf)], 1)
        return -tf.reduce_sum(tf.math.top_k(scores, 2).values)

    return loss, [w]


@healthy
def cumulative_logsumexp():
    w = var([1.0, 2.0, 3.0])
    return lambda: tf.reduce_sum(tf.math.cumulative_logsumexp(w)), [w]


@healthy
def keras_attention_with_padding():
    keras.utils.set_random_seed(0)
    layer = keras.layers.MultiHeadAttention(2, 4)
    x = tf.random.stateless_normal((2, 3, 8), (1, 2))
    mask = tf.constant([[[1, 1, 0]] * 3, [[1, 0, 0]] * 3]) > 0
    layer.build(x.shape, x.shape)
    return lambda: tf.reduce_sum(layer(x, x, attention_mask=mask) ** 2), layer.trainable_variables


@healthy
def keras_recurrence_with_masking():
    keras.utils.set_random_seed(0)
    layer = keras.layers.GRU(4)
    layer.build((None, 5, 3))
    x = tf.random.stateless_normal((2, 5, 3), (1, 2))
    mask = tf.constant([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]) > 0
    return lambda: tf.reduce_sum(layer(x, mask=mask) ** 2), layer.trainable_variables


@healthy
def batch_normalisation_of_one_row():
    layer = keras.layers.BatchNormalization()
    layer.build((None, 3))
    x = tf.constant([[1.0, 2.0, 3.0]])
    return lambda: tf.reduce_sum(layer(x, training=True) ** 2), layer.trainable_variables


@healthy
def unused_output_is_nan():
    w = var([1.0, 4.0])

    def loss():
        tf.math.log(-w)
        return tf.reduce_sum(tf.sqrt(w))

    return loss, [w]


@healthy
def normalised_zero_vector():
    w = var([0.0, 0.0])
    return lambda: tf.reduce_sum(tf.math.l2_normalize(w)), [w]


@healthy
def compiled_by_xla():
    w = var([1.0, 4.0])
    f = tf.function(lambda x: tf.reduce_sum(tf.where(x > 2, tf.sqrt(x), x)), jit_compile=True)
    return lambda: f(w), [w]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_healthy_program_raises_no_alarm(name):
    loss, variables = PROGRAMS[name]()
    d = diagnose(loss, variables)
    assert d.verdict in ("finite", "benign"), str(d)
    if d.verdict == "finite":
        assert not d.origins
    assert "dynamic" in name or all(h.finite for h in d.variables.values())


def test_enough_healthy_programs():
    assert len(PROGRAMS) >= 15
