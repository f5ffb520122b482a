"""The verdict on a remedy: a rule over measured numbers, and a sentence that gives them.

With b the step at which the untouched run broke:

makes it worse      it breaks before 0.9 b, or by then its loss is lost too and was not without it,
                    or the untouched run does not break at all
does nothing        it breaks within a tenth of b, or nothing broke without it either
only delays         it breaks later; or it never does, yet at the weights where the untouched run
                    broke its gradient is as bad, and it did not come as far: its loss is above the
                    loss at which the untouched run broke
hides it            finite, and some parameter's gradient vanishes where the reference does not
mends but distorts  finite, and the worst parameter's gradient is off by more than `DISTORTED`
mends               otherwise
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .fidelity import Fidelity
from .result import Verdict
from .walk import Walk

TOLERANCE = 0.1  # of b: breaking so much sooner or later is no difference
DISTORTED = 0.1  # relative distance beyond which not one digit is right


@dataclass(frozen=True)
class Numbers:
    """What the rule looks at. `survives`: whether the gradient is finite at the weights where the
    untouched run broke; None where these do not fit (other shapes) or nothing broke."""

    first_bad_step: int | None
    loss: float
    untouched_bad_step: int | None
    untouched_loss: float
    fidelity: Fidelity
    survives: bool | None = None


def judge(n: Numbers) -> Verdict:
    """See the module for the rule."""
    bad, untouched = n.first_bad_step, n.untouched_bad_step
    distorted = n.fidelity.distance is not None and n.fidelity.distance > DISTORTED
    if untouched is None:
        return "makes it worse" if bad is not None or n.fidelity.hidden else "does nothing"
    if bad is not None:
        if bad > untouched * (1 + TOLERANCE):
            return "only delays"
        loses_more = math.isfinite(n.untouched_loss) and not math.isfinite(n.loss)
        worse = bad < untouched * (1 - TOLERANCE) or loses_more
        return "makes it worse" if worse else "does nothing"
    if n.survives is False and not n.loss < n.untouched_loss:
        return "only delays"
    if n.fidelity.hidden:
        return "hides it (zero gradient)"
    return "mends but distorts the gradient" if distorted else "mends"


def explain(
    n: Numbers, verdict: Verdict, walk: Walk, question: bool, comparable: bool | None
) -> str:
    """One sentence with the numbers behind the verdict."""
    clauses = [_what_happened(n, verdict, walk)]
    if n.first_bad_step is None:
        clauses += [*_fidelity(n, question), *_health(walk)]
    if question:
        clauses.append("it answers another question")
    elif comparable is False:
        clauses.append("its loss is another one, not to be set against the untouched run’s")
    return "; ".join(clauses) + "."


def _what_happened(n: Numbers, verdict: Verdict, walk: Walk) -> str:
    bad, untouched = n.first_bad_step, n.untouched_bad_step
    if bad is None:
        finite = f"Finite for all {walk.step:,} steps, loss {n.loss:.3g}"
        if verdict == "only delays":
            return (
                f"{finite}, only because it has not come as far as the untouched run, which broke "
                f"at loss {n.untouched_loss:.3g}, and where that broke it breaks as well"
            )
        if untouched is None:
            return f"{finite}; finite without it as well, loss {n.untouched_loss:.3g}"
        return f"{finite}, where the untouched run broke at step {untouched:,}"
    lost = f"{walk.broken_of} gradients non-finite"
    if walk.broken_after_clipping > walk.broken:
        lost += f", {walk.broken_after_clipping} after clipping"
    if not math.isfinite(n.loss):
        lost += ", and the loss as well"
    if untouched is None:
        return f"Breaks at step {bad:,}, where nothing broke without it: {lost}"
    if bad == untouched:
        return f"Breaks at step {bad:,} as without it: {lost}"
    return f"Breaks at step {bad:,} instead of {untouched:,}: {lost}"


def _fidelity(n: Numbers, question: bool) -> list[str]:
    f = n.fidelity
    if f.hidden:
        return [f"the gradient of {_names(f.hidden)} vanishes where the reference does not"]
    if f.distance is not None:
        if f.distance > DISTORTED:
            off = f"its gradient is off by {100 * f.distance:.3g} %"
        else:
            off = f"gradient within {f.distance:.1e}"
        at_end = "" if f.at_end is None else f", {f.at_end:.1e} at the end"
        return [f"{off} of the float64 reference (worst {f.parameter}){at_end}"]
    return [] if question or not f.note else [f"fidelity: {f.note}"]


def _health(walk: Walk) -> list[str]:
    """What is finite need not be well."""
    clauses = []
    if walk.largest > math.sqrt(walk.largest_number):
        clauses.append(f"its gradients reach {walk.largest:.0e}, whose square overflows")
    if walk.still:
        clauses.append(
            f"{walk.still} of {len(walk.parameters)} gradients are zero at the end, so these "
            "parameters no longer learn"
        )
    return clauses


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
