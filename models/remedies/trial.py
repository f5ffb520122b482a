"""One trial: the run again from the same seed, with a remedy.

Fidelity is measured at the weights where the untouched run broke. A remedy that starts from other
weights or data never comes there: it is measured at the same step of its own path.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import BadInput
from .candidates import Candidate
from .cost import Pace, relative_cost
from .fidelity import (
    Fidelity,
    Place,
    compare,
    finite,
    gradient_at,
    reference_config,
    vanished,
)
from .result import Result
from .setting import PLAIN, TRACES, Setting, Work, advanced, compiled
from .untouched import Untouched
from .verdict import Numbers, explain, judge
from .walk import Walk, same_data

PATIENCE = 10  # times the steps that the untouched run lived


def trial(setting: Setting, candidate: Candidate, untouched: Untouched) -> Work[Result]:
    """Try one candidate; a knob that does not go with the data is a result as well."""
    try:
        walk = _walk(setting, candidate)
    except BadInput as error:
        return Result(verdict="could not be tried", reason=error.sentence, **_described(candidate))
    yield from compiled(walk)
    yield from advanced(walk, untouched.place.step)
    same_path = walk.starts_like(untouched.walk)
    place = untouched.place if same_path else walk.place
    yield from advanced(walk, untouched.horizon)
    fidelity, survives, comparable = Fidelity(note="not finite"), None, None
    if _outlives(walk, untouched):
        yield TRACES
        survives = _survives(walk, untouched)
        if survives is False:
            yield from advanced(walk, PATIENCE * (untouched.place.step + 1))
        yield TRACES
        comparable = _same_loss(walk, untouched)
        fidelity = Fidelity(note="another question")
        if not candidate.answers_another_question:
            yield TRACES
            fidelity = _fidelity(walk, place, untouched)
    yield TRACES
    metric_name, metric = walk.metric()
    yield PLAIN
    cost = yield from relative_cost(Pace(walk), untouched.pace, untouched.steps_of_a_round)
    numbers = Numbers(
        walk.first_bad_step, walk.loss, untouched.bad, untouched.walk.loss, fidelity, survives
    )
    verdict = judge(numbers)
    return Result(
        still=walk.still,
        verdict=verdict,
        reason=explain(numbers, verdict, walk, candidate.answers_another_question, comparable),
        first_bad_step=walk.first_bad_step,
        steps=walk.watched,
        loss=walk.loss,
        metric_name=metric_name,
        metric=metric,
        comparable=comparable,
        fidelity=fidelity,
        cost=cost,
        evidence=(untouched.walk.view(), walk.view()),
        **_described(candidate),
    )


def _described(candidate: Candidate) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "title": candidate.title,
        "knobs": candidate.knobs,
        "said": candidate.said,
        "proposed": candidate.proposed,
        "answers_another_question": candidate.answers_another_question,
    }


def _walk(setting: Setting, candidate: Candidate) -> Walk:
    scenario = setting.scenario
    knobs = {name: scenario.knob(name).check(value) for name, value in candidate.knobs.items()}
    config = setting.config | knobs
    anew = any(scenario.knob(name).stage == "data" for name in knobs)
    dataset = scenario.load(config, setting.content) if anew else setting.dataset
    return Walk(scenario, config, dataset)


def _outlives(walk: Walk, untouched: Untouched) -> bool:
    bad = walk.first_bad_step
    return bad is None or (untouched.bad is not None and bad > untouched.bad)


def _survives(walk: Walk, untouched: Untouched) -> bool | None:
    """Whether its gradient is finite at the very weights where the untouched run broke.

    None where that cannot be asked: nothing broke, or weights or data differ in shape or kind.
    """
    place, fits = untouched.place, walk.place.shapes == untouched.place.shapes
    if untouched.bad is None or not fits or not same_data(walk.dataset, untouched.walk.dataset):
        return None
    return finite(gradient_at(walk.scenario, walk.config, walk.dataset, place).applied)


def _fidelity(walk: Walk, place: Place, untouched: Untouched) -> Fidelity:
    fidelity = _distance(walk, place)
    if walk.first_bad_step is None:
        fidelity = replace(fidelity, at_end=_distance(walk, walk.place).distance)
    if place.shapes != untouched.place.shapes:
        return fidelity
    gradient = gradient_at(walk.scenario, walk.config, walk.dataset, place).applied
    asked = reference_config(walk.scenario, untouched.walk.config)
    due = gradient_at(walk.scenario, asked, walk.dataset, place).raw
    return replace(fidelity, hidden=vanished(gradient, due))


def _distance(walk: Walk, place: Place) -> Fidelity:
    scenario, data = walk.scenario, walk.dataset
    gradient = gradient_at(scenario, walk.config, data, place).applied
    reference = gradient_at(scenario, reference_config(scenario, walk.config), data, place)
    return compare(gradient, reference.raw)


def _same_loss(walk: Walk, untouched: Untouched) -> bool | None:
    """Whether both minimise the same mathematical loss, told by its value at the same weights.

    None where it has no value there.
    """
    place = untouched.place
    if walk.place.shapes != place.shapes:
        return False
    ours, theirs = (
        gradient_at(w.scenario, reference_config(w.scenario, w.config), w.dataset, place).loss
        for w in (walk, untouched.walk)
    )
    if not np.isfinite([ours, theirs]).all():
        return None
    return bool(np.isclose(ours, theirs, rtol=1e-9, atol=0.0))
