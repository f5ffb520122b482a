"""From a loss function to a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..lazy import tf
from .circumstances import LOSS_SCALE
from .compiled import as_compiled, differing
from .explain import explain
from .failures import read_failure
from .findings import Findings
from .growth import through_time
from .health import dense, health_of
from .lines import caller
from .links import bad_writes, name_of
from .observe import BACKWARD, FORWARD, Replay, replay
from .remedies_text import remedies
from .report import BENIGN, BROKEN, FINITE, Diagnosis, Health, Origin
from .scaling import Scale, loss_scale
from .spared import why_spared
from .values import Values, array
from .walk import Walk

Variables = Sequence[Any] | Mapping[str, Any]


def diagnose(
    loss_fn: Callable[[], Any],
    variables: Variables | None = None,
    transform: Callable[[list[Any]], Any] | None = None,
    *,
    history: Sequence[Mapping[str, float]] | None = None,
) -> Diagnosis:
    """Finds out why a loss or its gradients are not finite.

    Args:
        loss_fn: Called without arguments, returns a scalar floating-point tensor. It may hold
            anything: Keras models, `tf.function`, loops, custom gradients. It is run once, eagerly
            and observed (and once more as it is, where a loss scale or XLA has to be ruled out);
            variables that it writes get their values back.
        variables: The variables to differentiate by, as a list or name → variable; by default every
            trainable variable that the loss read.
        transform: Optionally what is done to the list of gradients afterwards (clipping); returns
            the list, or a pair that begins with it, as `tf.clip_by_global_norm` does.
        history: Optionally each parameter's largest magnitude at the last steps (name → number,
            oldest first), which tells a step size that is too large from other overflows.

    Returns:
        The `Diagnosis`.

    Raises:
        BadInput: `loss_fn` did not return a floating-point tensor.
        Exception: Whatever `loss_fn` or `transform` raise for reasons other than their numbers.
    """
    given, names = _flat(variables)
    here = caller()
    step = replay(loss_fn, lambda found: _named(found, names), given, transform)
    values = Values()
    if step.failure is not None:
        return _of_failure(step.failure, step, values)

    health = _healths(step, values, step.gradients)
    if step.transformed is not None:
        final = _healths(step, values, step.transformed)
        health = {n: final[n] if h.finite else h for n, h in health.items()}
    targets = _targets(step, values)
    walk = Walk(step, values, targets)
    findings = Findings(walk, here)
    broken = any(values.bad(t) is not None for tensors in targets.values() for t in tensors)
    scale = None
    origins: list[Origin] = []
    if broken:
        scale = loss_scale(loss_fn, step, walk, findings.judge.depends)
        origins = findings.origins(scale, history, health)
    notes: tuple[str, ...] = ()
    if not broken and step.observation.compiled:
        compiled = _of_compiled(loss_fn, step, values, findings)
        if compiled is not None:
            origins, health, notes = compiled
            broken = True
    benign = findings.benign()
    verdict = BROKEN if broken else BENIGN if benign else FINITE
    if broken and scale is not None and _repairs_itself(scale, origins, values, step):
        verdict = BENIGN
    why = why_spared(walk, health) if verdict == BROKEN else {}
    return _told(verdict, step, health, origins, benign, notes=notes, spared=why)


def _repairs_itself(scale: Scale, origins: list[Origin], values: Values, step: Replay) -> bool:
    """A step that dynamic loss scaling skips, or whose transform leaves nothing non-finite, is
    normal."""
    handled = step.transformed is not None and all(
        g is None or values.finite(dense(g)) for g in step.transformed
    )
    return (
        (scale.dynamic or handled)
        and values.finite(step.loss)
        and all(LOSS_SCALE in o.circumstances for o in origins)
    )


def _told(
    verdict: str, step: Replay, health: dict[str, Health], origins: list[Origin],
    benign: list[Origin], *, notes: tuple[str, ...] = (), spared: dict[str, str] | None = None,
) -> Diagnosis:  # fmt: skip
    texts: list[str] = []
    for origin in origins[:3]:
        op = origin.differentiates or origin.op
        found = remedies(origin.mechanism, origin.circumstances, op, origin.dtype)
        texts += [text for text in found if text not in texts]
    loss = None
    if step.loss is not None:
        number = np.sum(array(step.loss))
        loss = float(np.real(number))
    return Diagnosis(
        verdict=verdict,
        loss=loss,
        variables=health,
        origins=tuple(origins),
        explanation=explain(verdict, origins, health, len(benign)),
        remedies=tuple(texts),
        benign=tuple(benign),
        operations=len(step.observation.operations),
        through_time=through_time(step.observation.operations),
        notes=notes,
        spared=spared or {},
    )


def _flat(variables: Variables | None) -> tuple[list[Any] | None, list[str] | None]:
    if variables is None:
        return None, None
    if isinstance(variables, Mapping):
        return [_tensorflow_of(v) for v in variables.values()], list(variables)
    return [_tensorflow_of(v) for v in variables], [name_of(v) for v in variables]


def _tensorflow_of(variable: Any) -> Any:
    """The TensorFlow variable inside a Keras one."""
    if isinstance(variable, (tf.Variable, tf.Tensor)):
        return variable
    inner = getattr(variable, "value", variable)
    return variable if callable(inner) else inner


def _named(found: Sequence[Any], names: list[str] | None) -> dict[str, Any]:
    """Variables by name, equal names told apart by a number."""
    named: dict[str, Any] = {}
    for i, variable in enumerate(found):
        name = names[i] if names else name_of(variable)
        unique, n = name, 1
        while unique in named:
            n += 1
            unique = f"{name}_{n}"
        named[unique] = variable
    return named


def _healths(step: Replay, values: Values, gradients: Sequence[Any]) -> dict[str, Health]:
    pairs = zip(step.variables, gradients, strict=True)
    return {name: health_of(values, gradient) for name, gradient in pairs}


def _targets(step: Replay, values: Values) -> dict[str, list[Any]]:
    """What matters: each variable's gradient (before and after the transform), the loss, and what
    the step itself wrote to variables."""
    targets: dict[str, list[Any]] = {name: [] for name in step.variables}
    for gradients in (step.gradients, step.transformed or []):
        for name, gradient in zip(step.variables, gradients, strict=False):
            if gradient is not None:
                targets[name].append(dense(gradient))
    targets["loss"] = [step.loss]
    for name, tensors in bad_writes(step, values).items():
        targets.setdefault(name, []).extend(tensors)
    return targets


def _of_failure(error: Exception, step: Replay, values: Values) -> Diagnosis:
    """An operation that TensorFlow refused to run: its own fault, or that of what it was given."""
    failure = read_failure(error, step.observation)
    if failure is None:
        raise error
    health = {name: Health("not computed") for name in step.variables}
    forward = step.observation.stage == FORWARD
    # What failed on the way back was asked for by a loss that may have been bad before.
    bad = [] if step.loss is None else [step.loss]
    bad += failure.tensors if failure.mechanism is None else []
    origins = Findings(Walk(step, values, {"loss": bad}), None).origins(None, None, health)
    if failure.mechanism is not None:
        origins.append(
            Origin(
                op=failure.op,
                phase=FORWARD if forward else BACKWARD,
                mechanism=failure.mechanism,
                circumstances=(),
                source=failure.source,
                index=failure.index,
                inputs=failure.inputs,
                output=float("nan"),
                count=1,
                reaches=("loss", *step.variables) if forward else tuple(step.variables),
                size=1,
            )
        )
    if not origins:
        raise error
    return _told(BROKEN, step, health, origins, [])


def _of_compiled(
    loss_fn: Callable[[], Any], step: Replay, values: Values, findings: Findings,
) -> tuple[list[Origin], dict[str, Health], tuple[str, ...]] | None:  # fmt: skip
    try:
        loss, gradients = as_compiled(loss_fn, step)
    except tf.errors.OpError:  # XLA cannot compile it, which is not about numbers
        return None
    compiled = _healths(step, values, gradients)
    reached = [name for name, state in compiled.items() if not state.finite]
    if not values.finite(loss):
        reached.append("loss")
    if not reached:
        return None
    targets = sum(1 << bit for bit, n in enumerate(findings.walk.names) if n in reached)
    origins = findings.told(differing(step, values, targets))
    notes = [
        "The compiled function (jit_compile=True) gives a non-finite result; the same step run "
        "operation by operation is finite."
    ]
    if not origins:
        notes.append(
            "XLA may add in another order, in which a small ε is lost: 1 - p + 1e-9 as "
            "(1 + 1e-9) - p. Use a larger ε (1e-6), or a maximum instead of a sum."
        )
    return origins, compiled, tuple(notes)
