"""The replay leaves nothing behind, works in any thread, and names the user's own lines."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.python.eager import backprop, context, execute
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.ops import resource_variable_ops

from models.diagnosis import diagnose
from models.errors import BadInput


def registered():
    return (
        list(context.context().op_callbacks),
        execute.execute,
        polymorphic_function.Function.__call__,
        backprop.GradientTape._push_tape,
        resource_variable_ops.ResourceVariable.assign,
        resource_variable_ops.BaseResourceVariable.assign_add,
        tf.config.functions_run_eagerly(),
        tf.debugging.is_traceback_filtering_enabled(),
    )


def test_importing_the_diagnosis_does_not_load_tensorflow():
    code = "import sys; import models.diagnosis; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_constant_loss_that_is_nan_is_broken_without_an_operation_to_blame():
    d = diagnose(lambda: tf.constant(math.nan), [tf.Variable(1.0)])
    assert (d.verdict, d.origins) == ("broken", ())
    assert "no operation" in d.explanation


def test_more_variables_than_a_machine_word_has_bits():
    ws = [tf.Variable(0.0 if i == 99 else 1.0) for i in range(100)]
    d = diagnose(lambda: tf.add_n([tf.sqrt(w) for w in ws]), {f"w{i}": w for i, w in enumerate(ws)})
    assert d.origins[0].reaches == ("w99",)
    assert d.origins[0].path


def test_nothing_stays_registered():
    w, before = tf.Variable([0.0, 1.0]), registered()
    diagnose(lambda: tf.reduce_sum(tf.math.log(w)), [w])
    assert registered() == before


def test_nothing_stays_registered_after_an_error():
    w, before = tf.Variable([0.0, 1.0]), registered()

    def loss():
        tf.math.log(w)
        raise ZeroDivisionError("the user's own")

    with pytest.raises(ZeroDivisionError, match="the user's own"):
        diagnose(loss, [w])
    with pytest.raises(tf.errors.InvalidArgumentError):
        diagnose(lambda: tf.reduce_sum(tf.matmul(w[None], w[None])), [w])
    with pytest.raises(BadInput):
        diagnose(lambda: 1.0, [w])
    assert registered() == before


def test_two_threads_at_once_do_not_disturb_each_other():
    answers, errors = {}, []

    def work(number):
        try:
            w = tf.Variable([float(number % 2), 2.0])
            f = tf.function(lambda: tf.reduce_sum(tf.math.log(w)))
            for _ in range(20):
                d = diagnose(f, {f"w{number}": w})
                answers.setdefault(number, set()).add((d.verdict, d.operations, *d.variables))
        except Exception as error:
            errors.append(error)

    before = registered()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    compiled = tf.function(lambda x: tf.reduce_sum(x * x))
    for _ in range(200):  # an onlooker keeps its compiled function, and is not observed
        assert float(compiled(tf.constant([1.0, 2.0]))) == 5.0
    for thread in threads:
        thread.join()
    assert not errors
    assert {n: len(found) for n, found in answers.items()} == dict.fromkeys(range(4), 1)
    assert [next(iter(answers[n]))[0] for n in range(4)] == ["broken", "finite"] * 2
    assert registered() == before


def test_variables_keep_their_values():
    w, count = tf.Variable([1.0, 2.0]), tf.Variable(0.0, trainable=False)

    def loss():
        count.assign_add(1.0)
        w.assign(w * 2)
        return tf.reduce_sum(w**2) + count

    d = diagnose(loss, [w])
    assert d.loss == 21.0
    assert float(count) == 0.0
    np.testing.assert_array_equal(w.numpy(), [1.0, 2.0])


def test_default_variables_are_what_the_tape_saw():
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b")
    other = tf.Variable(1.0, trainable=False)
    d = diagnose(lambda: a * other)
    assert list(d.variables) == ["a"]
    assert diagnose(lambda: a * other, {"first": a, "second": b}).variables["second"].state == (
        "unconnected"
    )


def test_equal_names_are_told_apart():
    d = diagnose(lambda: a * b, [a := tf.Variable(1.0, name="w"), b := tf.Variable(2.0, name="w")])
    assert list(d.variables) == ["w", "w_2"]


def test_backward_operations_stand_on_the_line_of_their_forward_operation():
    w = tf.Variable([0.0, 1.0])

    def loss():
        root = tf.sqrt(w)  # this line
        return tf.reduce_sum(root * 2.0)

    d = diagnose(loss, [w])
    assert d.origins[0].source.text == "root = tf.sqrt(w)  # this line"
    assert d.origins[0].differentiates == "Sqrt"


def test_custom_gradient_stands_on_its_own_line():
    @tf.custom_gradient
    def root(x):
        y = tf.sqrt(x)

        def grad(dy):
            return dy * 0.5 / y  # this line

        return y, grad

    w = tf.Variable([0.0, 1.0])
    d = diagnose(lambda: tf.reduce_sum(root(w * 1.0)), [w])
    assert (d.origins[0].op, d.origins[0].phase) == ("RealDiv", "backward")
    assert d.origins[0].source.text.endswith("# this line")


def test_python_functions_are_seen_through():
    w = tf.Variable([0.0, 1.0])

    def inner(x):
        return tf.math.log(x)  # this line

    d = diagnose(lambda: tf.reduce_sum(tf.py_function(inner, [w], tf.float32)), [w])
    assert d.origins[0].op == "Log"
    assert d.origins[0].source.text.endswith("# this line")


@pytest.mark.parametrize("batched", [False, True])
def test_jacobians_inside_the_loss_are_seen_through(batched):
    w = tf.Variable([[1.0, 2.0, 3.0]], name="w")

    def loss(shift=0.0):
        x = w - shift
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * tf.math.log(x)  # this line
        rows = tape.batch_jacobian(y, x) if batched else tape.jacobian(y, x)
        return tf.reduce_sum(rows)

    d = diagnose(loss, [w])
    assert d.verdict == "finite"
    assert d.loss == pytest.approx(float(loss()))
    origin = diagnose(lambda: loss(1.0), [w]).origins[0]
    assert (origin.op, origin.mechanism) == ("Log", "log-of-zero")
    assert origin.source.text.endswith("# this line")


def test_path_leads_from_the_origin_to_the_variable():
    w = tf.Variable([0.0, 4.0], name="w")

    def loss():
        return tf.reduce_sum(tf.where(w > 0, 1 / w, 0.0))

    origin = diagnose(loss, [w]).origins[0]
    assert origin.path[0].op == "RealDiv"
    assert origin.path[-1].phase == "backward"
    assert origin.path[-1].nan == 1


def test_report_is_plain_data_and_html():
    w = tf.Variable([[0.0, 4.0]], name="w")
    d = diagnose(lambda: tf.reduce_sum(tf.math.log(w)), [w])
    plain = json.loads(json.dumps(d.to_dict(), allow_nan=False))
    assert plain["loss"] == "-inf"
    assert plain["origins"][0]["op"] == "Log"
    assert plain["origins"][0]["index"] == [0, 0]
    assert plain["origins"][0]["inputs"] == [0.0]
    assert plain["variables"]["w"]["positive_inf"] == 1
    assert "Log" in d._repr_html_()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=6))
def test_reach_agrees_with_the_gradients_for_any_values(values):
    w = tf.Variable(values, dtype=tf.float32, name="w")
    b = tf.Variable(1.0, name="b")

    def loss():
        return tf.reduce_sum(tf.where(w > 0, tf.math.log(w), b * w)) + tf.reduce_sum(tf.sqrt(w))

    with tf.GradientTape() as tape:
        value = loss()
    gradients = dict(zip("wb", tape.gradient(value, [w, b]), strict=True))
    bad = {n for n, g in gradients.items() if not np.isfinite(g.numpy()).all()}
    bad |= set() if math.isfinite(float(value)) else {"loss"}
    d = diagnose(loss, [w, b])
    assert {n for origin in d.origins for n in origin.reaches} == bad
    assert (d.verdict == "broken") == bool(bad)


def test_finite_gradients_agree_with_finite_differences():
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.normal(size=(3, 2)), dtype=tf.float64)
    x, y = tf.constant(rng.normal(size=(5, 3))), tf.constant(rng.integers(0, 2, (5, 2)), tf.float64)

    def loss():
        p = tf.clip_by_value(tf.sigmoid(x @ w), 1e-7, 1 - 1e-7)
        return -tf.reduce_sum(tf.where(y > 0, tf.math.log(p), tf.math.log(1 - p)))

    assert diagnose(loss, [w]).verdict == "finite"
    with tf.GradientTape() as tape:
        value = loss()
    exact, start = tape.gradient(value, w).numpy(), w.numpy()
    for place in np.ndindex(3, 2):
        sides = []
        for step in (1e-6, -1e-6):
            moved = start.copy()
            moved[place] += step
            w.assign(moved)
            sides.append(float(loss()))
        assert exact[place] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-3)


def test_lists_of_tensors_hand_on_what_went_in():
    w = tf.Variable([0.0, 1.0, 2.0])

    def loss():
        logs = tf.TensorArray(tf.float32, 3)
        for i in tf.range(3):
            logs = logs.write(i, tf.math.log(w[i]))  # this line
        return tf.reduce_sum(tf.scan(lambda a, x: a + x, logs.stack()))

    compiled = tf.function(loss)
    for fn in (loss, compiled, compiled.get_concrete_function()):
        d = diagnose(fn, [w])
        assert [o.op for o in d.origins] == ["Log"], str(d)
        assert d.origins[0].source.text.endswith("# this line")
        assert set(d.origins[0].reaches) == {"Variable", "loss"}


def test_a_restored_function_is_run_operation_by_operation(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            self.w = tf.Variable([0.0, 1.0], name="w")

        @tf.function(input_signature=[tf.TensorSpec([2], name="x")])
        def __call__(self, x):
            return tf.reduce_sum(tf.sqrt(self.w * x))

    tf.saved_model.save(Model(), str(tmp_path / "model"))
    model = tf.saved_model.load(str(tmp_path / "model"))
    d = diagnose(lambda: model(tf.ones(2)), {"w": model.w})  # this line
    origin = d.origins[0]
    assert (origin.op, origin.mechanism, origin.reaches) == ("SqrtGrad", "root-at-zero", ("w",))
    assert origin.source.text.endswith("# this line")


PIECES = {
    "log": tf.math.log,
    "sqrt": tf.sqrt,
    "power": lambda x: x**0.5,
    "exp": tf.exp,
    "acos": tf.acos,
    "reciprocal": lambda x: 1 / x,
    "softmax": tf.nn.softmax,
    "where": lambda x: tf.where(x > 0, x, 0 * x),
    "clip": lambda x: tf.clip_by_value(x, 1e-10, 1 - 1e-10),
    "centre": lambda x: x - tf.reduce_mean(x),
    "normalise": lambda x: tf.linalg.normalize(x)[0],
    "reverse": lambda x: tf.reverse(x, [0]),
    "repeat": lambda x: tf.concat([x, x], 0),
    "first": lambda x: tf.gather(x, [0]),
    "outer": lambda x: tf.reshape(x[:, None] @ x[None], [-1]),
    "scan": lambda x: tf.scan(lambda a, b: a * b, x),
    "map": lambda x: tf.map_fn(tf.math.log1p, x),
    "function": tf.function(tf.math.digamma),
    "python": lambda x: tf.py_function(tf.sqrt, [x], x.dtype),
    "half": lambda x: tf.cast(tf.cast(x, tf.float16), x.dtype),
}
SPECIAL = [0.0, 1.0, -1.0, 0.5, 1e38, -1e38, 1e-40, 100.0, -30.0, math.inf, math.nan]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(SPECIAL), min_size=1, max_size=3),
    st.lists(st.sampled_from(sorted(PIECES)), min_size=1, max_size=5),
)
def test_what_is_bad_is_what_is_reached_in_any_program(values, names):
    w = tf.Variable(values, dtype=tf.float32, name="w")

    def loss():
        x = w * 1.0
        for name in names:
            x = PIECES[name](x)
        return tf.reduce_sum(x)

    with tf.GradientTape() as tape:
        value = loss()
    gradient = tape.gradient(value, w)
    bad = {"loss"} if not math.isfinite(float(value)) else set()
    if gradient is not None and not np.isfinite(gradient.numpy()).all():
        bad.add("w")
    d = diagnose(loss, [w])
    assert {n for o in d.origins for n in o.reaches} == bad, str(d)
    assert (d.verdict == "broken") == bool(bad)
    assert all(o.source is not None and o.source.file == __file__ for o in d.origins)


def test_size_of_the_gradient_through_time_is_told_exactly():
    w = tf.Variable(3.0)

    def loss():
        h = tf.constant([1.0])
        for _ in range(20):
            h = w * h
        return tf.reduce_sum(h)

    found = diagnose(loss, [w]).through_time
    # ∂loss/∂h is 3^k, k steps from the end.
    assert found.factor == pytest.approx(3.0, rel=1e-3)
    np.testing.assert_allclose(np.diff(found.log10), np.log10(3.0), atol=2e-3)
