"""Where the non-finite elements of an operation's output came from.

Each observed operation is asked which elements of its inputs account for the marked elements of
its outputs, and which marked elements are its own doing. Exact for elementwise operations, for
those that only move elements, for sums and matrix products; elsewhere every non-finite element of
every input counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from . import _tensorflow
from .observe import Operation
from .values import Mask, Values, array, broadcasts, is_numeric, unbroadcast

_ELEMENTWISE_NAMES = """
    Abs Acos Acosh Add AddN AddV2 Angle Asin Asinh Atan Atan2 Atanh BesselI0 BesselI0e
    BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0
    BesselY1 Betainc Cast Ceil CheckNumerics ClipByValue Complex ComplexAbs Conj Cos Cosh
    Dawsn Digamma Div DivNoNan Elu EluGrad Erf Erfc Erfinv Exp Expint Expm1 Floor FloorDiv
    FloorMod FresnelCos FresnelSin Identity IdentityN Igamma IgammaGradA Igammac Imag Inv
    InvGrad LeakyRelu LeakyReluGrad Lgamma Log Log1p Maximum Minimum Mod Mul MulNoNan Ndtri
    Neg NextAfter Polygamma Pow Real RealDiv Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad
    ReluGrad Rint Round Rsqrt RsqrtGrad Select SelectV2 Selu SeluGrad Sigmoid SigmoidGrad
    Sign Sin Sinh Softplus SoftplusGrad Softsign SoftsignGrad Spence Sqrt SqrtGrad Square
    SquaredDifference StopGradient Sub Tan Tanh TanhGrad TruncateDiv Xdivy Xlog1py Xlogy
    ZerosLike Zeta
"""
ELEMENTWISE = frozenset(_ELEMENTWISE_NAMES.split())
_MOVES_NAMES = """
    BatchToSpaceND BroadcastTo Concat ConcatV2 DepthToSpace DiagPart ExpandDims Gather
    GatherNd GatherV2 InvertPermutation MatrixDiag MatrixDiagPartV3 MatrixDiagV3
    MatrixBandPart MirrorPad Pack Pad PadV2 Reshape ResourceGather Reverse ReverseSequence
    ReverseV2 Roll Slice SpaceToBatchND SpaceToDepth Split SplitV Squeeze StridedSlice
    StridedSliceGrad Tile Transpose Unpack
"""
MOVES = frozenset(_MOVES_NAMES.split())
REDUCTIONS = frozenset({"Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"})
PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
CONTRACTIONS = PRODUCTS | {"Einsum"}
_ROWWISE_NAMES = """
    Softmax LogSoftmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits
"""
ROWWISE = frozenset(_ROWWISE_NAMES.split())


@dataclass
class Flow:
    """`inputs`: input number → its accountable elements; `fresh`: output number → own doing."""

    inputs: dict[int, Mask] = field(default_factory=dict)
    fresh: dict[int, Mask] = field(default_factory=dict)


def flow(seen: Operation, marked: dict[int, Mask], values: Values) -> Flow:
    """Splits the `marked` non-finite output elements into inherited and fresh ones."""
    bad = {i: m for i, t in enumerate(seen.inputs) if (m := values.bad(t)) is not None}
    if not bad:
        return Flow(fresh=dict(marked))
    rule = _rule(seen)
    try:
        return rule(seen, marked, bad) if rule else Flow(inputs=dict(bad))
    except (IndexError, KeyError, ValueError):
        # A layout that the rules do not foresee: less exact, but nothing is lost.
        return Flow(inputs=dict(bad))


_Rule = Callable[[Operation, dict[int, Mask], dict[int, Mask]], Flow]


def _rule(seen: Operation) -> _Rule | None:
    if seen.op in ELEMENTWISE and _is_elementwise(seen):
        return _select if seen.op in ("Select", "SelectV2") else _elementwise
    if seen.op in MOVES:
        return _moved
    if seen.op in REDUCTIONS:
        return _reduced
    if seen.op in PRODUCTS:
        return _product
    return _rowwise if seen.op in ROWWISE else None


def _is_elementwise(seen: Operation) -> bool:
    if len(seen.outputs) != 1:
        return len(seen.outputs) == len(seen.inputs)
    shape = tuple(seen.outputs[0].shape)
    return all(broadcasts(tuple(t.shape), shape) for t in seen.inputs)


def _elementwise(seen: Operation, marked: dict[int, Mask], bad: dict[int, Mask]) -> Flow:
    result = Flow()
    if len(seen.outputs) > 1:  # IdentityN
        result.inputs = {i: marked[i] & bad[i] for i in bad if i in marked}
        return result
    mask = marked[0]
    inherited = np.zeros_like(mask)
    for i, own in bad.items():
        touched = np.broadcast_to(own, mask.shape) & mask
        if touched.any():
            inherited |= touched
            result.inputs[i] = unbroadcast(touched, own.shape) & own
    fresh = mask & ~inherited
    if fresh.any():
        result.fresh[0] = fresh
    return result


def _select(seen: Operation, marked: dict[int, Mask], bad: dict[int, Mask]) -> Flow:
    mask = marked[0]
    chosen = np.asarray(seen.inputs[0].numpy(), bool)
    if seen.op == "Select":  # a vector condition picks rows
        chosen = chosen.reshape(chosen.shape + (1,) * (mask.ndim - chosen.ndim))
    result = Flow()
    for i, taken in ((1, chosen), (2, ~chosen)):
        if i in bad:
            touched = np.broadcast_to(bad[i], mask.shape) & mask & taken
            if touched.any():
                result.inputs[i] = unbroadcast(touched, bad[i].shape) & bad[i]
    return result


def _moved(seen: Operation, marked: dict[int, Mask], bad: dict[int, Mask]) -> Flow:
    """Sends numbered elements through the same operation and sees where they come out."""
    result = Flow()
    for i, own in bad.items():
        kept = _trace(seen, i, own, marked)
        if kept.any():
            result.inputs[i] = kept
    return result if result.inputs else Flow(inputs=dict(bad))


def _trace(seen: Operation, i: int, own: Mask, marked: dict[int, Mask]) -> Mask:
    import ml_dtypes  # noqa: PLC0415

    tensor = seen.inputs[i]
    exact = {np.dtype(np.float16): 11, np.dtype(ml_dtypes.bfloat16): 8, np.dtype(np.float32): 24}
    dtype = np.dtype(tensor.dtype.as_numpy_dtype)
    if own.size >= 2 ** exact.get(dtype, 52) or dtype.kind == "c":
        return own
    from tensorflow import constant  # noqa: PLC0415

    inputs = [constant(np.zeros(t.shape), t.dtype) if is_numeric(t) else t for t in seen.inputs]
    numbers = np.arange(1, own.size + 1, dtype=np.float64).reshape(own.shape)
    inputs[i] = constant(numbers.astype(dtype), tensor.dtype)
    outputs = _tensorflow.run_again(seen.op, inputs, seen.attrs, len(seen.outputs))
    kept = np.zeros(own.size + 1, bool)
    for k, mask in marked.items():
        kept[array(outputs[k])[mask].astype(np.int64)] = True
    return kept[1:].reshape(own.shape) & own


def _reduced(seen: Operation, marked: dict[int, Mask], bad: dict[int, Mask]) -> Flow:
    own = bad[0]
    axes = reduced_axes(seen)
    spread = marked[0].reshape([1 if i in axes else n for i, n in enumerate(own.shape)])
    inherited = own.any(axis=axes, keepdims=True) & spread
    fresh = spread & ~inherited
    result = Flow(inputs={0: own & inherited})
    if fresh.any():
        result.fresh[0] = fresh.reshape(marked[0].shape)
    return result


def reduced_axes(seen: Operation) -> tuple[int, ...]:
    """The axes that a reduction takes away, counted from 0."""
    rank = len(seen.inputs[0].shape)
    return tuple(int(a) % max(rank, 1) for a in np.ravel(seen.inputs[1].numpy()))


def _product(seen: Operation, marked: dict[int, Mask], bad: dict[int, Mask]) -> Flow:
    """`out[i, j]` depends on row i of the left factor and column j of the right one."""
    turned = _turned(seen)
    mask = marked[0]
    result, inherited = Flow(), np.zeros_like(mask)
    for i, own in bad.items():
        view = np.swapaxes(own, -1, -2) if turned[i] else own
        summed = -1 if i == 0 else -2
        reached = np.broadcast_to(view.any(axis=summed, keepdims=True), mask.shape) & mask
        if not reached.any():
            continue
        inherited |= reached
        lines = reached.any(axis=summed, keepdims=True)
        kept = view & unbroadcast(lines, (*view.shape[:-2], *lines.shape[-2:]))
        result.inputs[i] = np.swapaxes(kept, -1, -2) if turned[i] else kept
    fresh = mask & ~inherited
    if fresh.any():
        result.fresh[0] = fresh
    return result


def _turned(seen: Operation) -> list[bool]:
    """Whether a matrix product takes its left and its right factor transposed."""
    names = ("transpose_a", "adj_x"), ("transpose_b", "adj_y")
    return [bool(seen.attribute(long, seen.attribute(short, False))) for long, short in names]


def contracted(seen: Operation, left: Mask, right: Mask) -> np.ndarray:
    """How many pairs of marked elements meet in each element of a matrix product or an einsum."""
    factors = [left.astype(np.float32), right.astype(np.float32)]
    if seen.op == "Einsum":
        equation = seen.attribute("equation")
        text = equation.decode() if isinstance(equation, bytes) else equation
        return np.asarray(np.einsum(text, *factors))
    turned = zip(factors, _turned(seen), strict=True)
    sides = [np.swapaxes(f, -1, -2) if t else f for f, t in turned]
    return np.asarray(sides[0] @ sides[1])


def _rowwise(seen: Operation, marked: dict[int, Mask], bad: dict[int, Mask]) -> Flow:
    own = bad.get(0)
    if own is None:
        return Flow(inputs=dict(bad))
    rows = np.zeros(own.shape[:-1], bool)
    for mask in marked.values():
        rows |= mask.any(axis=-1) if mask.ndim == own.ndim else mask
    inherited = own.any(axis=-1) & rows
    result = Flow(inputs={i: m for i, m in bad.items() if i} | {0: own & inherited[..., None]})
    fresh = {
        k: kept
        for k, mask in marked.items()
        if (kept := mask & ~(inherited[..., None] if mask.ndim == own.ndim else inherited)).any()
    }
    result.fresh = fresh
    return result
