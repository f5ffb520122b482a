"""A diagnosis in words."""

from __future__ import annotations

from collections.abc import Sequence

from . import mechanisms as m
from .circumstances import EMPTY, LOSS_SCALE, LOST_EPSILON, MASKED, STEP
from .report import Health, Origin, number

# What the user called, where TensorFlow's own type name says something else.
_KNOWN_AS = {
    "RealDiv": "division", "Xdivy": "xdivy", "Reciprocal": "reciprocal", "Inv": "reciprocal",
    "Mul": "multiplication", "MatMul": "matrix product", "BatchMatMulV2": "matrix product",
    "AddV2": "addition", "AddN": "sum of gradients", "Sub": "subtraction", "Pow": "power",
    "SqrtGrad": "derivative of sqrt", "RsqrtGrad": "derivative of rsqrt",
    "ReciprocalGrad": "derivative of the reciprocal", "InvGrad": "derivative of the reciprocal",
    "FusedBatchNormV3": "batch normalisation", "FusedBatchNormGradV3": "batch normalisation",
    "SparseSoftmaxCrossEntropyWithLogits": "softmax cross-entropy",
    "SoftmaxCrossEntropyWithLogits": "softmax cross-entropy", "L2Loss": "squared norm",
    "ResourceGather": "embedding lookup", "GatherV2": "gather", "ReadVariableOp": "variable",
    "LogMatrixDeterminant": "log-determinant", "MatrixInverse": "matrix inverse",
}  # fmt: skip

_WHAT = {
    m.LOG_ZERO: "received exactly 0",
    m.LOG_NEGATIVE: "received a negative number",
    m.DIVIDE: "divided by 0",
    m.ZERO_OVER_ZERO: "divided 0 by 0",
    m.POWER_ZERO: "received the base 0, where a power below 1 has an infinite derivative (and a "
    "negative power an infinite value)",
    m.POWER_NEGATIVE: "received a negative base with a fractional exponent",
    m.ROOT_ZERO: "was taken at 0, where the slope of a root is infinite",
    m.ROOT_NEGATIVE: "received a negative number under the root",
    m.EDGE: "was taken at the edge of its domain, where its derivative is infinite",
    m.DOMAIN: "received a number outside its domain",
    m.ANGLE: "was taken at the origin, where an angle has no derivative",
    m.EXP: "left the range of the dtype",
    m.PRODUCT: "left the range of the dtype: finite numbers, too large a result",
    m.EXPLOSION: "left the range of the dtype after the gradient had grown steadily",
    m.CAST: "received a number that the narrower dtype cannot hold",
    m.SOFTMAX: "received a row of −Inf only: nothing is left to normalise",
    m.DEFINITE: "received a matrix that is not positive definite (or is singular)",
    m.POLE: "was evaluated at a pole or outside its domain",
    m.INDEX: "received an index outside the table",
    m.CLIP: "overflowed inside the clipping itself, which then spread to every gradient",
    m.INPUT: "was given data that already held a non-finite value",
    m.PARAMETER: "was already non-finite before this step",
    m.STATE: "was already non-finite before this step",
}
# Where the operation makes another sentence of it.
_LABEL = "was given a label whose logit is −Inf: a probability of 0"
_NOTHING = "was taken over nothing: no element is left"
_WHAT_OF: dict[tuple[str, str], str] = {
    **{(m.LOG_ZERO, op): "received −1, where 1 + x is 0" for op in ("Log1p", "Xlog1py")},
    **{(m.LOG_NEGATIVE, op): "received a number below −1" for op in ("Log1p", "Xlog1py")},
    (m.LOG_ZERO, "SoftmaxCrossEntropyWithLogits"): _LABEL,
    (m.LOG_ZERO, "SparseSoftmaxCrossEntropyWithLogits"): _LABEL,
    (m.ROOT_ZERO, "Rsqrt"): "was taken at 0, where its value is infinite",
    **{(m.ZERO_OVER_ZERO, op): _NOTHING for op in m.OF_NOTHING},
}
# Numbers that are not 0 and count as 0, for what is made of them leaves the range of the dtype.
_NEARLY = {
    m.LOG_ZERO: "received a number too close to 0 for the derivative 1/x",
    m.DIVIDE: "divided by a number too close to 0",
}
_WHY = {
    MASKED: "the value is not used (an untaken tf.where, a factor of 0), yet 0 · Inf became NaN",
    LOST_EPSILON: "the ε that should have guarded it was lost to rounding in this dtype",
    EMPTY: "the divisor counts a mask or a class that is absent here",
    LOSS_SCALE: "it overflowed only because of the loss scale, as dynamic loss scaling expects and "
    "repairs by itself",
    STEP: "the steps are too large for this slope: each throws the parameters further",
}


def explain(
    verdict: str, origins: Sequence[Origin], variables: dict[str, Health], benign: int
) -> str:
    """One sentence or two for the whole diagnosis."""
    if not origins and verdict == "broken":
        return "The step is not finite, but no operation that was observed made it so."
    if not origins:
        if verdict == "benign":
            hold = "operation holds" if benign == 1 else "operations hold"
            return (
                f"The loss and every gradient are finite; {benign} {hold} non-finite values that "
                "reach neither."
            )
        return "The loss and every gradient are finite."
    text = sentence(origins[0], variables)
    others = len(origins) - 1
    if others:
        text += f" {others} more {'cause' if others == 1 else 'causes'} below."
    return text


def sentence(origin: Origin, variables: dict[str, Health]) -> str:
    """What happened at one cause, where, why it got through, and what it reached."""
    name = _KNOWN_AS.get(origin.op)
    what = f"`{origin.op}`" + (f" ({name})" if name else "")
    before = origin.mechanism in (m.PARAMETER, m.STATE)
    if origin.name and before:
        what = f"The variable `{origin.name}`"
    elif origin.phase == "backward":
        of = f" of `{origin.differentiates}`" if origin.differentiates else ""
        what += f", on the way back{of},"
    parts = [f"{what} {_happened(origin)}"]
    if origin.size > 1:
        parts.append(f"in {origin.count} of {origin.size} places")
    text = " ".join(parts) + _where(origin)
    told = _WHAT_OF.get((origin.mechanism, origin.op)) == _NOTHING
    reasons = [_WHY[c] for c in origin.circumstances if c in _WHY and not (told and c == EMPTY)]
    if before:
        reasons.append("look at the step that wrote it")
    if reasons:
        text += "; " + "; ".join(reasons)
    if origin.growth is not None and origin.mechanism == m.EXPLOSION:
        text += (
            f"; it grew {number(origin.growth.factor)}-fold a pass over "
            f"{len(origin.growth.log10)} passes of line {origin.growth.line}"
        )
    return text + _reach(origin, variables) + "."


def _happened(origin: Origin) -> str:
    known = _WHAT_OF.get((origin.mechanism, origin.op))
    if known is None and 0 not in origin.inputs:
        known = _NEARLY.get(origin.mechanism)
    return known or _WHAT.get(origin.mechanism, "made a non-finite value")


def _where(origin: Origin) -> str:
    text = ""
    if origin.mechanism == m.INPUT and origin.places and origin.index:
        text += f" ({_places(origin)})"
    if origin.source is not None:
        text += f" at {origin.source}"
    numbers = ", ".join(number(v) for v in origin.inputs)
    return text + (f" [{numbers} → {number(origin.output)}]" if numbers else "")


def _reach(origin: Origin, variables: dict[str, Health]) -> str:
    names = [n for n in origin.reaches if n in variables]
    loss = " and the loss" if "loss" in origin.reaches else ""
    connected = [n for n, h in variables.items() if h.state not in ("unconnected", "not computed")]
    if names and len(names) == len(connected) and len(names) > 1:
        return f"; it reached all {len(names)} variables{loss}"
    if names:
        untouched = [n for n in connected if n not in names]
        more = " …" if len(untouched) > 4 else ""
        rest = f" ({', '.join(untouched[:4])}{more} stayed clear)" if untouched else ""
        return f"; it reached {', '.join(names[:6])}{' …' if len(names) > 6 else ''}{loss}{rest}"
    return "; it reached the loss" if loss else ""


def _places(origin: Origin) -> str:
    """Rows and columns of a table, or indices, of what came in bad."""
    if len(origin.index) != 2:
        shown = ", ".join(str(list(p) if len(p) != 1 else p[0]) for p in origin.places[:5])
        return f"element {shown}" if len(origin.places) == 1 else f"elements {shown}"
    words = []
    for axis, name in enumerate(("row", "column")):
        numbers = sorted({p[axis] for p in origin.places})
        more = " …" if origin.count > len(origin.places) or len(numbers) > 8 else ""
        words.append(
            f"{name}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:8]))}{more}"
        )
    return ", ".join(words)
