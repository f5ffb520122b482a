"""What to change, by mechanism and circumstance. Each text names the change, with numbers that the
dtype can hold."""

from __future__ import annotations

from collections.abc import Sequence

from . import mechanisms as m
from .circumstances import EMPTY, LOSS_SCALE, LOST_EPSILON, MASKED, STEP

_BY_MECHANISM: dict[str, tuple[str, ...]] = {
    m.LOG_ZERO: (
        "Where the argument is a softmax or a sigmoid, take the loss from logits: "
        "tf.nn.log_softmax, tf.nn.sigmoid_cross_entropy_with_logits or from_logits=True.",
        "Keep the argument of the logarithm away from 0: tf.math.log(tf.maximum(x, {log})); for "
        "p·log p use tf.math.xlogy.",
    ),
    m.LOG_NEGATIVE: (
        "Make the argument positive before the logarithm: tf.maximum(x, {log}), or a softplus or "
        "sigmoid in front of it.",
    ),
    m.DIVIDE: ("Guard the divisor: x / tf.maximum(n, {divisor}), or tf.math.divide_no_nan.",),
    m.ZERO_OVER_ZERO: (
        "Guard the divisor: total / tf.maximum(count, 1.0), or tf.math.divide_no_nan.",
    ),
    m.POWER_ZERO: (
        "Keep the base away from 0: tf.maximum(base, {base}) ** p, or "
        "tf.exp(p * tf.math.log(tf.maximum(base, {base}))).",
    ),
    m.POWER_NEGATIVE: (
        "Keep the base positive (softplus, square), or keep its sign: "
        "tf.sign(f) * tf.maximum(tf.abs(f), {base}) ** p.",
    ),
    m.ROOT_ZERO: (
        "Add a small number inside the root: tf.sqrt(x + {root}) (outside it does not help); for a "
        "standard deviation tf.sqrt(tf.math.reduce_variance(x) + {base}).",
    ),
    m.ROOT_NEGATIVE: (
        "Keep the argument of the root at or above 0: tf.sqrt(tf.maximum(x, {root})).",
    ),
    m.EDGE: (
        "Clip inside the open interval, tf.clip_by_value(x, -1 + {edge}, 1 - {edge}): clipping to "
        "the edge itself does not help; for an angle use tf.math.atan2 of cross and dot product.",
    ),
    m.DOMAIN: (
        "Bring the argument inside the function's domain before calling it: "
        "tf.clip_by_value(x, -1 + {edge}, 1 - {edge}).",
    ),
    m.ANGLE: (
        "Keep the point away from the origin: add 1e-12 to one coordinate, or replace (0, 0) by "
        "(1, 0) with tf.where before taking the angle and mask the result.",
    ),
    m.EXP: (
        "Use the stable form: tf.nn.softplus, tf.nn.log_softmax, tf.reduce_logsumexp.",
        "Clip the exponent before exp: tf.minimum(x, 80.0) in float32 (11 in float16).",
    ),
    m.PRODUCT: (
        "Keep the numbers smaller: scale the input and the initial weights down, lower "
        "the learning rate, or square and sum in a wider dtype (float32 for float16).",
    ),
    m.EXPLOSION: (
        "Start from weights that keep the gradient's size (Glorot or orthogonal initialiser) and "
        "clip by global norm for the training that follows: clipping alone comes too late, once "
        "the gradient has overflowed.",
        "Shorten the way back: mask the padding, use shorter sequences, or clip the gradient "
        "inside the recurrence.",
    ),
    m.CAST: (
        "Keep this value in the wider dtype, or scale it down before tf.cast; bfloat16 has the "
        "range of float32.",
        "If it is a constant that only masks, any that the dtype holds will do, such as {masked}.",
    ),
    m.SOFTMAX: (
        "Mask with a large finite number instead of −Inf: tf.where(mask, scores, {masked}), and "
        "set rows without any allowed place to zero before they are used.",
    ),
    m.DEFINITE: (
        "Add a small multiple of the identity before factorising: "
        "tf.linalg.cholesky(K + {identity} * tf.eye(n)).",
    ),
    m.POLE: (
        "Keep the argument away from the pole: tf.maximum(x, 1e-6) in front of the function; where "
        "a tf.where leaves the place out, replace the argument there by a harmless one first.",
    ),
    m.INDEX: (
        "Bring every label or id inside the table: enlarge the table (input_dim, number of "
        "classes) or clean the ids; tf.clip_by_value hides the mistake.",
    ),
    m.CLIP: (
        "Find the Inf before clipping: clipping cannot repair it. If every gradient is finite, "
        "divide by the largest magnitude before taking the norm, or clip each value first.",
    ),
    m.INPUT: ("Clean the data: drop or fill the rows and columns named above before training.",),
    m.PARAMETER: (
        "Go back to the last step whose parameters were finite, and mend the step that broke them.",
    ),
    m.STATE: (
        "Start the optimiser's state afresh (or restore it with the parameters of the last finite "
        "step): a NaN in a moment never leaves it.",
    ),
}
_BY_CIRCUMSTANCE: dict[str, str] = {
    MASKED: (
        "Use two selects: replace the offending input by a harmless one inside the branch, "
        "safe = tf.where(ok, x, 1.0), and select again outside, tf.where(ok, f(safe), other)."
    ),
    LOST_EPSILON: (
        "Choose an ε that the dtype can hold: at least 1e-7 next to 1 in float32, 1e-3 in float16, "
        "1e-2 in bfloat16."
    ),
    EMPTY: "Guard the count before dividing: tf.maximum(count, 1.0).",
    LOSS_SCALE: (
        "Use dynamic loss scaling (keras.optimizers.LossScaleOptimizer), which skips this step and "
        "halves the scale; with a fixed scale, lower it."
    ),
    STEP: "Lower the learning rate (or scale the input): each step overshot the one before.",
}


# Where the operation asks for another change.
_ACOSH = ("Keep the argument above 1: tf.acosh(tf.maximum(x, 1 + {edge})).",)
_QUANTILE = ("Clip the probability inside (0, 1): tf.clip_by_value(p, {edge}, 1 - {edge}).",)
_LABEL = (
    "Leave every label a finite logit: mask with {masked} instead of −Inf, or drop the examples "
    "whose label is masked.",
)
_NOTHING = (
    "Leave out what selects nothing: tf.cond(tf.size(x) > 0, …); for a mean "
    "tf.math.divide_no_nan(tf.reduce_sum(x), tf.cast(tf.size(x), x.dtype)).",
)
_LOG1P = (
    "Take the loss from logits: tf.math.log_sigmoid(-z) is log(1 - sigmoid(z)) and never log 0.",
    "Keep the argument above −1: tf.math.log1p(tf.maximum(x, -1 + {edge})).",
)
_SINGULAR = (
    "Add a small multiple of the identity first: tf.linalg.inv(A + {identity} * tf.eye(n)); for "
    "equations tf.linalg.lstsq with l2_regularizer.",
)
_BY_OPERATION: dict[tuple[str, str], tuple[str, ...]] = {
    (m.EDGE, "Acosh"): _ACOSH,
    (m.DOMAIN, "Acosh"): _ACOSH,
    (m.EDGE, "Ndtri"): _QUANTILE,
    (m.DOMAIN, "Ndtri"): _QUANTILE,
    (m.LOG_ZERO, "Log1p"): _LOG1P,
    (m.LOG_NEGATIVE, "Log1p"): _LOG1P[1:],
    (m.LOG_ZERO, "SoftmaxCrossEntropyWithLogits"): _LABEL,
    (m.LOG_ZERO, "SparseSoftmaxCrossEntropyWithLogits"): _LABEL,
    **{(m.ZERO_OVER_ZERO, op): _NOTHING for op in m.OF_NOTHING},
    **{
        (m.DEFINITE, op): _SINGULAR
        for op in ("LogMatrixDeterminant", "MatrixDeterminant", "MatrixInverse", "MatrixSolve",
                   "MatrixTriangularSolve")
    },
}  # fmt: skip

_USUAL = {
    "log": "1e-7", "divisor": "1e-6", "base": "1e-6", "root": "1e-12", "edge": "1e-6",
    "masked": "-1e9", "identity": "1e-6",
}  # fmt: skip
_BY_DTYPE: dict[str, dict[str, str]] = {
    "float16": {
        "log": "1e-4", "divisor": "1e-2", "base": "1e-3", "root": "1e-4", "edge": "1e-3",
        "masked": "-1e4", "identity": "1e-2",
    },
    "bfloat16": {"edge": "1e-2", "identity": "1e-2"},
    "float32": {"identity": "1e-4"},
}  # fmt: skip


def remedies(
    mechanism: str, circumstances: Sequence[str], op: str = "", dtype: str = "float32"
) -> tuple[str, ...]:
    """Texts for one cause, the most particular first."""
    texts = _BY_OPERATION.get((mechanism, op)) or _BY_MECHANISM.get(mechanism, ())
    if LOSS_SCALE in circumstances:
        return (_BY_CIRCUMSTANCE[LOSS_SCALE], *_filled(texts, dtype))
    particular = [_BY_CIRCUMSTANCE[c] for c in circumstances]
    return (*particular, *_filled(texts, dtype))


def _filled(texts: Sequence[str], dtype: str) -> list[str]:
    numbers = _USUAL | _BY_DTYPE.get(dtype, {})
    return [text.format(**numbers) for text in texts]
