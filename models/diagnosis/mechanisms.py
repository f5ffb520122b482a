"""What happened at a cause: from the operation and the numbers it was given.

One table entry a kind of operation. An entry looks at the operands at the offending element and
names the mechanism, or returns None when these numbers are harmless to it and the result simply
left the range of the dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Rule = Callable[[Sequence[Any], float], str | None]

LOG_ZERO, LOG_NEGATIVE = "log-of-zero", "log-of-negative"
DIVIDE, ZERO_OVER_ZERO = "divide-by-zero", "zero-over-zero"
POWER_ZERO, POWER_NEGATIVE = "power-of-zero", "power-of-negative"
ROOT_ZERO, ROOT_NEGATIVE = "root-at-zero", "root-of-negative"
EDGE, DOMAIN = "inverse-function-edge", "inverse-function-domain"
ANGLE, EXP, PRODUCT = "angle-at-origin", "exp-overflow", "product-overflow"
EXPLOSION, CAST, SOFTMAX = "backprop-explosion", "cast-overflow", "all-masked-softmax"
DEFINITE, POLE, INDEX = "not-positive-definite", "special-function-pole", "index-out-of-range"
CLIP, INPUT = "clip-overflow", "bad-input"
PARAMETER, STATE = "bad-parameter", "bad-optimizer-state"

OF_NOTHING = ("Mean", "Max", "Min")  # what these make of no elements is not finite


def _log(argument: int, shift: float = 0.0) -> Rule:
    def rule(x: Sequence[Any], tiny: float) -> str | None:
        value = x[argument] + shift
        if isinstance(value, complex):
            return LOG_ZERO if value == 0 else None
        return LOG_ZERO if abs(value) < tiny else LOG_NEGATIVE if value < 0 else None

    return rule


def _divide(x: Sequence[Any], tiny: float) -> str | None:
    if abs(x[1]) >= tiny:
        return None
    return ZERO_OVER_ZERO if abs(x[0]) < tiny else DIVIDE


def _reciprocal(x: Sequence[Any], tiny: float) -> str | None:
    return DIVIDE if abs(x[0]) < tiny else None


def _power(x: Sequence[Any], tiny: float) -> str | None:
    base, exponent = x[0], x[1]
    if abs(base) < tiny:
        return POWER_ZERO
    if isinstance(base, complex) or isinstance(exponent, complex) or base > 0:
        return None
    return POWER_NEGATIVE if exponent != math.floor(exponent) else None


def _root(x: Sequence[Any], tiny: float) -> str | None:
    if isinstance(x[0], complex):
        return ROOT_ZERO if x[0] == 0 else None
    return ROOT_ZERO if abs(x[0]) < tiny else ROOT_NEGATIVE if x[0] < 0 else None


def _root_gradient(x: Sequence[Any], tiny: float) -> str | None:
    return ROOT_ZERO if abs(x[0]) < tiny or not np.isfinite(x[0]) else None


def _always(mechanism: str) -> Rule:
    return lambda x, tiny: mechanism


def _inside(low: float, high: float) -> Rule:
    """An inverse function whose derivative is infinite at `low` and `high`, its edges."""

    def rule(x: Sequence[Any], tiny: float) -> str | None:
        if isinstance(x[0], complex):
            return EDGE
        return EDGE if x[0] in (low, high) else DOMAIN if not low < x[0] < high else None

    return rule


def _at_origin(x: Sequence[Any], tiny: float) -> str | None:
    return ANGLE if all(abs(v) < tiny for v in x[:2]) else None


def _lgamma(x: Sequence[Any], tiny: float) -> str | None:
    return POLE if x[0] <= 0 else None


_LINEAR_ALGEBRA_NAMES = """
    Cholesky CholeskyGrad LogMatrixDeterminant Lu MatrixDeterminant MatrixExponential
    MatrixInverse MatrixLogarithm MatrixSolve MatrixSolveLs MatrixSquareRoot
    MatrixTriangularSolve Qr SelfAdjointEig SelfAdjointEigV2 Svd Eig BandedTriangularSolve
    TridiagonalSolve
"""
_LINEAR_ALGEBRA = _LINEAR_ALGEBRA_NAMES.split()
_SPECIAL_NAMES = """
    BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0
    BesselY1 Betainc Dawsn FresnelCos FresnelSin Igamma IgammaGradA Igammac Polygamma Spence
    Zeta RandomGammaGrad
"""
_SPECIAL = _SPECIAL_NAMES.split()

RULES: dict[str, Rule] = {
    "Log": _log(0),
    "Log1p": _log(0, 1.0),
    "Xlogy": _log(1),
    "Xlog1py": _log(1, 1.0),
    **dict.fromkeys(
        ["RealDiv", "Div", "Xdivy", "FloorDiv", "FloorMod", "Mod", "TruncateDiv"], _divide
    ),
    **dict.fromkeys(["Reciprocal", "Inv"], _reciprocal),
    **dict.fromkeys(["ReciprocalGrad", "InvGrad"], lambda x, tiny: DIVIDE),
    "Pow": _power,
    **dict.fromkeys(["Sqrt", "Rsqrt"], _root),
    **dict.fromkeys(["SqrtGrad", "RsqrtGrad"], _root_gradient),
    **dict.fromkeys(["Acos", "Asin", "Atanh", "Erfinv"], _inside(-1.0, 1.0)),
    "Acosh": _inside(1.0, math.inf),
    "Ndtri": _inside(0.0, 1.0),
    **dict.fromkeys(["Exp", "Expm1", "Sinh", "Cosh", "BesselI0", "BesselI1"], _always(EXP)),
    "Expint": lambda x, tiny: POLE if x[0] <= 0 else EXP,
    **dict.fromkeys(["Lgamma", "Digamma"], _lgamma),
    **dict.fromkeys(_SPECIAL, _always(POLE)),
    **dict.fromkeys(_LINEAR_ALGEBRA, _always(DEFINITE)),
    **dict.fromkeys(["Atan2", "Angle", "ComplexAbs"], _at_origin),
    "Cast": _always(CAST),
}

# What a singularity on the way back means, by the forward operation that is differentiated.
SINGULAR: dict[str, str] = {
    "Log": LOG_ZERO,
    "Log1p": LOG_ZERO,
    "Xlogy": LOG_ZERO,
    "Xlog1py": LOG_ZERO,
    "Pow": POWER_ZERO,
    **dict.fromkeys(["Sqrt", "Rsqrt", "EuclideanNorm", "SqrtGrad", "RsqrtGrad"], ROOT_ZERO),
    **dict.fromkeys(["Acos", "Asin", "Acosh", "Atanh", "Erfinv", "Ndtri"], EDGE),
    **dict.fromkeys(["Atan2", "Angle", "ComplexAbs"], ANGLE),
    **dict.fromkeys(["Lgamma", "Digamma"], POLE),
    **dict.fromkeys(_SPECIAL, POLE),
    **dict.fromkeys(_LINEAR_ALGEBRA, DEFINITE),
}
_SINGULARITIES = frozenset({DIVIDE, ZERO_OVER_ZERO, POWER_ZERO, ROOT_ZERO, LOG_ZERO, EXP, ANGLE})


def own_mechanism(op: str, x: Sequence[Any], tiny: float) -> str | None:
    """The mechanism that operand values `x` set off in operation `op`, None for a mere overflow.

    `tiny` is the smallest normal number of the dtype: below it, numbers count as zero.
    """
    rule = RULES.get(op)
    if rule is None or not x:
        return None
    try:
        return rule(x, tiny)
    except (IndexError, TypeError):
        return None


def backward_mechanism(op: str, x: Sequence[Any], tiny: float, forward: str | None) -> str | None:
    """The mechanism of a backward operation: its own singularity, told as that of the forward
    operation it differentiates."""
    own = own_mechanism(op, x, tiny)
    if own is None and forward in _SPECIAL_BACKWARD and not _large(x):
        return SINGULAR[forward]
    if own in _SINGULARITIES and forward in SINGULAR:
        return SINGULAR[forward]
    return own


_SPECIAL_BACKWARD = frozenset({*_SPECIAL, *_LINEAR_ALGEBRA, "Lgamma", "Digamma", "Erfinv", "Ndtri"})


def _large(x: Sequence[Any]) -> bool:
    return any(abs(v) > 1e3 for v in x)
