"""Neighbours of the public cases: the same kinds of fault as people write them elsewhere.

Each is a loss of one vector or matrix `w`, with the operation, phase, mechanism and circumstances
that theory gives. The line that must be named ends in `# here`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from models.diagnosis import Diagnosis, diagnose
from models.diagnosis.remedies_text import remedies

total = tf.reduce_sum


@dataclass(frozen=True)
class Neighbour:
    loss: Callable
    at: Any
    dtype: Any
    told: tuple
    reaches: set[str]
    says: str


NEIGHBOURS: list[Neighbour] = []


def neighbour(
    op, phase, mechanism, *circumstances, at, reaches="w loss", dtype=tf.float32, says=""
):
    told = op, phase, mechanism, set(circumstances)

    def add(loss):
        NEIGHBOURS.append(Neighbour(loss, at, dtype, told, set(reaches.split()), says))
        return loss

    return add


def diagnosed(n: Neighbour) -> Diagnosis:
    w = tf.Variable(np.array(n.at, n.dtype.as_numpy_dtype), name="w")
    return diagnose(lambda: n.loss(w), [w])


@neighbour("Exp", "forward", "exp-overflow", "masked-branch", at=[[10.0, 0.0], [0.0, 10.0]])
def contrast_without_the_diagonal(w):
    e = tf.exp(w @ w)  # here
    return total(tf.math.log(total(e * (1 - tf.eye(2)), 1)))


@neighbour("RealDiv", "forward", "divide-by-zero", "masked-branch", at=[0.0, 1.0])
def forces_without_the_diagonal(w):
    near = 1 / (w[:, None] - w[None]) ** 2  # here
    return total((near**2 - near) * (1 - tf.eye(2)))


@neighbour("Sub", "forward", "bad-input", "masked-branch", at=[1.0, 2.0])
def missing_label_times_zero(w):
    error = w - tf.constant([1.0, np.nan])  # here
    return total(error**2 * tf.constant([1.0, 0.0]))


@neighbour("Sub", "forward", "bad-input", "masked-branch", at=[1.0, 2.0], reaches="w")
def missing_label_not_selected(w):
    y = tf.constant([1.0, np.nan])
    error = w - y  # here
    return total(tf.where(tf.math.is_nan(y), 0.0, error**2))


@neighbour("RealDiv", "forward", "divide-by-zero", at=[2.0, 1.0])
def share_of_no_variance(w):
    y = tf.constant([3.0, 3.0])
    return total((y - w) ** 2) / total((y - tf.reduce_mean(y)) ** 2)  # here


@neighbour("RealDiv", "forward", "divide-by-zero", at=[3.0])
def unbiased_variance_of_one_sample(w):
    n = tf.cast(tf.shape(w)[0], w.dtype)
    return total((w - 1) ** 2) / (n - 1)  # here


@neighbour("RealDiv", "forward", "divide-by-zero", at=[3.0, 1.0])
def unbiased_variance_of_one_selected(w):
    mask = tf.constant([1.0, 0.0])
    return total(mask * (w - 1) ** 2) / (total(mask) - 1)  # here


@neighbour("RealDiv", "forward", "zero-over-zero", "empty-count", at=[[1.0, 2.0], [3.0, 4.0]])
def mean_over_the_given_lengths(w):
    lengths = tf.constant([0, 2])
    kept = tf.sequence_mask(lengths, 2, dtype=w.dtype)
    return total(total(w * kept, 1) / tf.cast(lengths, w.dtype))  # here


@neighbour("RealDiv", "forward", "zero-over-zero", "empty-count", at=[0.1, 0.2])
def recall_without_positives(w):
    y = tf.constant([0.0, 0.0])
    found, missed = total(w * y), total((1 - w) * y)
    return 1 - found / (found + missed)  # here


@neighbour("RealDiv", "forward", "divide-by-zero", "empty-count", at=[0.1, 0.2])
def weight_of_the_absent_rest(w):
    y = tf.constant([1.0, 1.0])
    weight = 1 / (2.0 - total(y))  # here
    return total(w) * weight


@neighbour(
    "Mul", "forward", "cast-overflow", "masked-branch", at=[1.0, 2.0], dtype=tf.float16,
    says="[−1e+09 → −Inf]",
)  # fmt: skip
def mask_beyond_half_precision(w):
    return tf.nn.softmax(w + (1.0 - tf.constant([1.0, 0.0], w.dtype)) * -1e9)[0]  # here


@neighbour(
    "Min", "forward", "zero-over-zero", "empty-count", at=[1.0, 2.0], reaches="loss",
    says="over nothing",
)  # fmt: skip
def hardest_of_no_negatives(w):
    return tf.reduce_min(tf.boolean_mask(w, w > 5.0))  # here


@neighbour("Log1p", "forward", "log-of-zero", at=[40.0], says="received −1")
def log_of_one_minus_sigmoid(w):
    return total(tf.math.log1p(-tf.sigmoid(w)))  # here


@neighbour("RealDiv", "forward", "divide-by-zero", at=[1e-39], says="too close to 0")
def divisor_below_the_normal_numbers(w):
    return total(1 / w)  # here


@neighbour("BesselI0", "forward", "exp-overflow", at=[100.0])
def concentration_too_large(w):
    return total(tf.math.log(tf.math.bessel_i0(w)))  # here


@neighbour(
    "SparseSoftmaxCrossEntropyWithLogits", "forward", "log-of-zero", at=[1.0, 2.0],
    reaches="loss", says="label whose logit",
)  # fmt: skip
def masked_label(w):
    z = w + tf.constant([0.0, -np.inf])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(1, z)  # here


@neighbour("Log", "forward", "log-of-zero", at=[0.0, 1.0])
def recomputed_logarithm(w):
    kept = tf.recompute_grad(lambda x: tf.math.log(2 * x))  # here
    return total(kept(w))


@neighbour("LogMatrixDeterminant", "forward", "not-positive-definite", at=[[1.0, 2.0], [2.0, 4.0]])
def volume_of_a_flat_map(w):
    return tf.linalg.slogdet(w)[1]  # here


@neighbour(
    "MatrixInverse", "backward", "not-positive-definite", at=[[1.0, 2.0], [2.0, 4.0]], reaches="w"
)
def determinant_of_a_singular_matrix(w):
    return tf.linalg.det(w)  # here


@neighbour(
    "ResourceGatherNd", "forward", "index-out-of-range", at=[[1.0, 2.0], [2.0, 4.0]],
    says="[7, 2",
)  # fmt: skip
def coordinates_outside_the_table(w):
    return total(tf.gather_nd(w, [[0, 1], [0, 7]]))  # here


@neighbour("Pow", "forward", "power-of-zero", "masked-branch", at=[[1.0], [2.0], [3.0]])
def degree_of_an_isolated_node(w):
    edges = tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    scale = total(edges, 1) ** -0.5  # here
    return total(((scale[:, None] * edges * scale[None]) @ w) ** 2)


@neighbour("FloorDiv", "forward", "divide-by-zero", at=[1.0])
def whole_division_by_zero(w):
    groups = tf.constant(4) // tf.constant(0)  # here
    return total(w) * tf.cast(groups, w.dtype)


@neighbour(
    "UnsortedSegmentSum", "forward", "index-out-of-range", at=[1.0, 2.0], says="[9, 3 →"
)  # fmt: skip
def segment_outside(w):
    return total(tf.math.unsorted_segment_sum(w, [0, 9], 3))  # here


@neighbour("Log", "forward", "log-of-zero", "masked-branch", at=[[0.0, 1.0]])
def label_by_a_matrix_product(w):
    logs = tf.math.log(w)  # here
    return total(tf.matmul(logs, tf.one_hot([1], 2), transpose_b=True))


@neighbour("Log", "forward", "log-of-zero", "masked-branch", at=[[0.0, 1.0]])
def label_by_an_einsum(w):
    logs = tf.math.log(w)  # here
    return total(tf.einsum("ij,ij->i", logs, tf.one_hot([1], 2)))


@neighbour("Log", "forward", "log-of-zero", at=[[0.0, 1.0]])
def weights_in_a_matrix_product(w):
    logs = tf.math.log(w)  # here
    return total(tf.matmul(logs, tf.constant([[0.5, 0.0], [0.5, 1.0]])))


@pytest.mark.parametrize("n", NEIGHBOURS, ids=lambda n: n.loss.__name__)
def test_a_neighbour_is_told_as_its_kind(n):
    d = diagnosed(n)
    origin = d.origins[0]
    told = origin.op, origin.phase, origin.mechanism, set(origin.circumstances)
    assert (d.verdict, told) == ("broken", n.told), str(d)
    lines, first = inspect.getsourcelines(n.loss)
    here = next(first + i for i, text in enumerate(lines) if text.rstrip().endswith("# here"))
    assert origin.source is not None
    assert (origin.source.file, origin.source.line) == (__file__, here), str(d)
    assert {name for o in d.origins for name in o.reaches} == n.reaches
    assert d.remedies
    assert n.says in d.explanation


def test_only_what_depends_on_the_numbers_is_told_as_descended_from_them():
    w = tf.Variable([-2.0])
    d = diagnose(lambda: tf.reduce_mean(tf.math.log(w)), {"w": w})
    assert "Shape" not in d.spared["w"]


@pytest.mark.parametrize(
    ("dtype", "masked", "edge"), [("float32", "-1e9", "1e-6"), ("float16", "-1e4", "1e-3")]
)
def test_a_remedy_names_numbers_that_the_dtype_holds(dtype, masked, edge):
    assert masked in remedies("all-masked-softmax", (), dtype=dtype)[0]
    assert f"1 - {edge}" in remedies("inverse-function-edge", (), "Asin", dtype)[0]
    assert float(np.array(1 - float(edge), dtype)) < 1
    assert np.isfinite(np.array(float(masked), dtype))


def test_a_remedy_suits_the_operation():
    assert "1 + 1e-6" in remedies("inverse-function-edge", (), "Acosh")[0]
    assert "(0, 1)" in remedies("inverse-function-domain", (), "Ndtri")[0]
    assert "log_sigmoid" in remedies("log-of-zero", (), "Log1p")[0]


def test_a_mistake_that_is_not_about_numbers_is_raised_as_it_is():
    w = tf.Variable([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        diagnose(lambda: tf.reduce_sum(w / tf.ones(3)), [w])


@pytest.mark.parametrize("phase", ["transform", "custom gradient"])
def test_an_epsilon_is_lost_on_the_way_back_too(phase):
    w = tf.Variable([1.0, 2.0], dtype=tf.float16)

    def scaled(g):
        return g / (tf.abs(g) + 1e-8)  # here

    @tf.custom_gradient
    def passed(x):
        return tf.identity(x), scaled

    def loss():
        return tf.reduce_sum((passed(w) if phase != "transform" else w) * [0.0, 1.0])

    d = diagnose(loss, [w], (lambda g: [scaled(g[0])]) if phase == "transform" else None)
    origin = d.origins[0]
    assert (origin.op, origin.mechanism) == ("RealDiv", "zero-over-zero")
    assert "lost-epsilon" in origin.circumstances
    assert origin.source.text.endswith("# here")


@pytest.mark.parametrize("kind", ["called", "traced", "inside a traced one"])
def test_a_reciprocal_root_that_only_xla_spoils_is_a_masked_branch(kind):
    w = tf.Variable([0.0, 4.0], name="w")

    @tf.function(jit_compile=True)
    def compiled(x):
        scale = tf.math.rsqrt(x)  # here
        return tf.reduce_sum(tf.where(x > 1, scale, 0.0))

    if kind == "traced":
        compiled = compiled.get_concrete_function(tf.TensorSpec(2))
    loss = (lambda: compiled(w)) if kind != "traced" else lambda: compiled(tf.convert_to_tensor(w))
    if kind == "inside a traced one":
        loss = tf.function(loss).get_concrete_function()
    origin = diagnose(loss, [w]).origins[0]
    assert (origin.op, origin.mechanism) == ("Rsqrt", "root-at-zero")
    assert "masked-branch" in origin.circumstances


def unrolled(w, steps):
    def step(i, h):
        return i + 1, tf.sin(h @ w)  # here

    start = tf.constant(0), tf.constant([[0.1, 0.2]])
    return tf.while_loop(lambda i, h: i < steps, step, start)[1]


def scanned(w, steps):
    xs = tf.zeros((steps, 1, 2))
    return tf.scan(lambda h, x: tf.sin(h @ w + x), xs, tf.constant([[0.1, 0.2]]))[-1]  # here


@pytest.mark.parametrize("through", [unrolled, scanned])
@pytest.mark.parametrize("kind", ["eager", "traced", "asked for its gradient before"])
def test_an_explosion_is_told_however_the_steps_are_repeated(through, kind):
    w = tf.Variable([[31.0, 10.0], [-10.0, 31.0]], name="w")
    loss = tf.function(lambda: total(through(w, 40)))
    if kind != "eager":
        loss = loss.get_concrete_function()
    if kind.startswith("asked"):  # which gives the graph's loop more to carry
        with tf.GradientTape() as tape:
            value = loss()
        tape.gradient(value, w)
    origin = diagnose(loss, [w]).origins[0]
    assert (origin.phase, origin.mechanism) == ("backward", "backprop-explosion")
    assert origin.source.text.endswith("# here")
    assert origin.growth.factor == pytest.approx(np.hypot(31, 10), rel=0.5)


def test_a_traced_function_with_a_gradient_of_its_own_keeps_it():
    w = tf.Variable([100.0, 1.0], name="w")

    @tf.custom_gradient
    def softplus(x):
        e = tf.exp(x)
        return tf.nn.softplus(x), lambda dy: dy * (1 - 1 / (1 + e))

    traced = tf.function(lambda: total(softplus(w))).get_concrete_function()
    d = diagnose(traced, [w])
    assert d.verdict == "benign", str(d)
    assert d.variables["w"].finite


def test_a_traced_choice_among_many_is_diagnosed_from_outside():
    w = tf.Variable([0.0, 1.0], name="w")
    branches = [lambda: total(w), lambda: total(tf.math.log(w))]
    traced = tf.function(lambda i: tf.switch_case(i, branches)).get_concrete_function(
        tf.TensorSpec((), tf.int32)
    )
    d = diagnose(lambda: traced(tf.constant(1)), [w])
    assert d.verdict == "broken"
    assert set(d.origins[0].reaches) == {"w", "loss"}


@pytest.mark.parametrize("epsilon", [1e-10, 1e-3])
def test_an_epsilon_is_lost_in_a_traced_function_too(epsilon):
    w = tf.Variable([100.0], name="w")

    def lost():
        p = tf.minimum(tf.sigmoid(w), 1 - 1e-10)
        return -total(tf.math.log(1 - p))

    def kept():
        p = tf.minimum(tf.sigmoid(w), 1 - 1e-3)
        return -total(tf.math.log(1 - p)) + total(tf.sqrt(w - 100.0))

    traced = tf.function(lost if epsilon < 1e-7 else kept).get_concrete_function()
    origin = diagnose(traced, [w]).origins[0]
    assert ("lost-epsilon" in origin.circumstances) == (epsilon < 1e-7)


def test_a_root_of_a_negative_number_that_only_xla_does_not_forgive():
    w = tf.Variable([-2.0, 4.0], name="w")

    @tf.function(jit_compile=True)
    def compiled(x):
        root = tf.sqrt(x)  # here
        return tf.reduce_sum(tf.where(x > 0, root, 0.0))

    origin = diagnose(lambda: compiled(w), [w]).origins[0]
    assert (origin.op, origin.mechanism) == ("Sqrt", "root-of-negative")
    assert origin.circumstances == ("masked-branch",)


def test_an_epsilon_that_only_xla_loses_is_told_as_a_note():
    w = tf.Variable([200.0], name="w")

    @tf.function(jit_compile=True)
    def compiled(x):
        return -tf.reduce_sum(tf.math.log(1 - tf.sigmoid(x) + 1e-9))

    d = diagnose(lambda: compiled(w), [w])
    assert d.verdict == "broken"
    assert not d.origins
    assert "another order" in " ".join(d.notes)
