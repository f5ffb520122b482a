"""The diagnosis beside `tf.debugging.enable_check_numerics`: what each gets right, and how long it
takes. Run with `python tests/benchmarks/diagnosis.py`.

Both see the same broken losses (every rule of the generated variants, float32 where it applies) and
the same healthy programs. Times are medians, against one unobserved eager step of the same loss.
"""

from __future__ import annotations

import inspect
import re
import statistics
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "models" / "diagnosis")]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from test_diagnosis_false_alarms import PROGRAMS  # noqa: E402
from test_diagnosis_variants import RULES, faults, plain  # noqa: E402

from models.diagnosis import diagnose  # noqa: E402

OP = re.compile(r'op "(\w+)"')


def gradient(loss, variables):
    with tf.GradientTape() as tape:
        value = loss()
    return tape.gradient(value, variables)


def offending(rule):
    values = np.full(5, sum(rule.good) / 2)
    values[3] = rule.bad
    dtype = tf.float32 if tf.float32 in rule.dtypes else rule.dtypes[0]
    return tf.Variable(tf.cast(tf.constant(values), dtype)), dtype


def check_numerics(loss, variables):
    """(op, line, seconds) that enable_check_numerics names, or (None, None, seconds)."""
    tf.debugging.enable_check_numerics()
    start = time.perf_counter()
    try:
        gradient(loss, variables)
        return None, None, time.perf_counter() - start
    except tf.errors.InvalidArgumentError as error:
        spent = time.perf_counter() - start
        found = OP.search(str(error))
        frames = [
            f
            for f in traceback.extract_tb(error.__traceback__)
            if "site-packages" not in f.filename
        ]
        return found[1] if found else None, frames[-1].lineno, spent
    finally:
        tf.debugging.disable_check_numerics()


def compared():
    ours, theirs = np.zeros(3, int), np.zeros(3, int)
    for rule in RULES:
        x, dtype = offending(rule)
        found = faults(rule, dtype, (5,), plain)
        words = " ".join(found)
        ours += ["op " not in words, "source" not in words, "mechanism" not in words]
        lines, first = inspect.getsourcelines(rule.loss)
        line = next(first + i for i, t in enumerate(lines) if t.rstrip().endswith("# here"))
        op, place, _ = check_numerics(lambda r=rule, v=x: r.loss(v), [x])
        theirs += [op in rule.ops, place == line, 0]
    alarms = [0, 0]
    for build in PROGRAMS.values():
        loss, variables = build()
        alarms[0] += diagnose(loss, variables).verdict == "broken"
        variables = [getattr(v, "value", v) if not isinstance(v, tf.Variable) else v
                     for v in variables]  # fmt: skip
        try:
            alarms[1] += check_numerics(loss, variables)[0] is not None
        except tf.errors.OpError:
            alarms[1] += 1
    return ours, theirs, alarms


def recurrence(length=110, hidden=32, vocabulary=20, batch=4, std=0.06):
    """A hand-written GRU encoder and decoder, unrolled: more than 20,000 operations a step."""
    tf.random.set_seed(0)
    shapes = {"W": (vocabulary + hidden, hidden), "U": (hidden, hidden), "b": (hidden,)}
    parts = [
        {
            k + g: tf.Variable(tf.random.normal(s, stddev=std))
            for k, s in shapes.items()
            for g in "zrh"
        }
        for _ in range(2)
    ]
    out = tf.Variable(tf.random.normal((hidden, vocabulary), stddev=std))
    words = tf.one_hot(
        np.random.default_rng(0).integers(0, vocabulary, (batch, length)), vocabulary
    )

    def step(p, h, x):
        c = tf.concat([h, x], 1)
        z = tf.sigmoid(c @ p["Wz"] + h @ p["Uz"] + p["bz"])
        r = tf.sigmoid(c @ p["Wr"] + h @ p["Ur"] + p["br"])
        k = tf.tanh(c @ p["Wh"] + r * (h @ p["Uh"]) + p["bh"])
        return (1 - z) * h + z * k

    def loss():
        h, total, previous = tf.zeros((batch, hidden)), 0.0, tf.zeros((batch, vocabulary))
        for t in range(length):
            h = step(parts[0], h, words[:, t])
        for t in range(length):
            h = step(parts[1], h, previous)
            previous = words[:, t]
            p = tf.nn.softmax(tf.tanh(h @ out))
            total -= tf.reduce_mean(tf.reduce_sum(previous * tf.math.log(p), 1))
        return total

    return loss, [*parts[0].values(), *parts[1].values(), out]


def balanced():
    """The class-balanced log loss on 426 rows, one class saturated."""
    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=(426, 30)), tf.float32)
    y = tf.constant(rng.integers(0, 2, (426, 1)), tf.float32)
    sizes = [(30, 16), (16, 8), (8, 1)]
    w = [tf.Variable(rng.normal(size=s) * 3, dtype=tf.float32) for s in sizes]
    b = [tf.Variable(tf.zeros(s[1])) for s in sizes]

    def loss():
        h = tf.nn.leaky_relu(x @ w[0] + b[0])
        h = tf.nn.leaky_relu(h @ w[1] + b[1])
        p = tf.sigmoid(h @ w[2] + b[2])
        p = tf.where(p < 1e-10, 1e-10, p)
        p = tf.where(p > 1 - 1e-10, 1 - 1e-10, p)
        w1, w0 = -1 / tf.reduce_sum(y), -1 / tf.reduce_sum(1 - y)
        return tf.reduce_sum(tf.where(y == 1, w1 * tf.math.log(p), w0 * tf.math.log(1 - p))) / 2

    return loss, [*w, *b]


def timed(run, times=3):
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        answer = run()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent), answer


def main():
    ours, theirs, alarms = compared()
    n = len(RULES)
    print(f"{'':34} {'diagnosis':>12} {'check_numerics':>15}")
    for i, name in enumerate(("right operation", "right line", "mechanism explained")):
        print(f"{name:34} {f'{ours[i]} / {n}':>12} {f'{theirs[i]} / {n}':>15}")
    print(f"{'false alarms':34} {f'{alarms[0]} / {len(PROGRAMS)}':>12} "
          f"{f'{alarms[1]} / {len(PROGRAMS)}':>15}")  # fmt: skip
    print()
    heads = f"{'step':>8} {'diagnosis':>10} {'ratio':>6} {'check_numerics':>15} {'operations':>11}"
    print(f"{'time':34} {heads}")
    rows = {
        "recurrence, finite": recurrence(),
        "recurrence, exploding": recurrence(hidden=64, std=1.0),
        "balanced loss, broken": balanced(),
    }
    for name, (loss, variables) in rows.items():
        gradient(loss, variables)
        bare, _ = timed(lambda f=loss, v=variables: [g.numpy() for g in gradient(f, v)])
        spent, d = timed(lambda f=loss, v=variables: diagnose(f, v))
        other = check_numerics(loss, variables)[2]
        print(f"{name:34} {bare:7.3f}s {spent:9.3f}s {spent / bare:6.2f} {other:14.3f}s "
              f"{d.operations:11,d}  {d.verdict}")  # fmt: skip


if __name__ == "__main__":
    main()
