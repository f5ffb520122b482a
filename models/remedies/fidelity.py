"""Fidelity: how far a gradient lies from the float64 gradient of the same mathematical loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..lazy import tf
from ..scenarios.contract import Array, Dataset, Scenario
from ..scenarios.knobs import Config
from ..training.program import Gradients, program_for

NEGLIGIBLE = 1e-9  # of the whole gradient: a parameter's share below it counts as this much
ROUNDING = 1e-6  # a relative distance that float32's rounding explains
VANISHED = 1e-6  # of what the gradient should be, or of the largest parameter's


@dataclass(frozen=True)
class Fidelity:
    """`distance`: of the worst `parameter`, ‖g − r‖ / ‖r‖ with the float64 reference r; None where
    it could not be measured, and `note` says why. `at_end`: the same after the remedy's last step.
    `hidden`: parameters whose gradient vanishes although that of the untouched run's loss does not.
    """

    distance: float | None = None
    parameter: str | None = None
    note: str = ""
    at_end: float | None = None
    hidden: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[float, float]:
        """To sort by: `distance`, in which less than `ROUNDING` says nothing, then `at_end`."""
        here, at_end = (math.inf if d is None else d for d in (self.distance, self.at_end))
        return max(here, ROUNDING), at_end


@dataclass(frozen=True)
class Place:
    """Weights at which a gradient is taken, and the number of the step (it picks the batch)."""

    step: int
    parameters: Mapping[str, Array]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: array.shape for name, array in self.parameters.items()}


def gradient_at(scenario: Scenario, config: Config, dataset: Dataset, place: Place) -> Gradients:
    """The gradients that a step from there would apply (after clipping), unobserved by checks."""
    config = config | dict.fromkeys(scenario.checks, False)
    program = program_for(scenario, config, dataset, place.shapes)
    state = program.initial_state(place.parameters)
    state = state._replace(step=tf.constant(place.step, tf.int64))
    return program.gradients(state, config, program.tensors(dataset.train))


def reference_config(scenario: Scenario, config: Config) -> Config:
    """The same mathematical loss in its numerically sound form: float64, nothing clipped.

    What belongs to the optimiser has no part in a gradient and is set alike for all, so that
    remedies share their reference's graph.
    """
    sound = {"dtype": "float64", "loss_scaling": False, "clipping": "off", "optimizer": "sgd"}
    return config | sound | dict(scenario.reference)


def compare(gradient: Mapping[str, Array], reference: Mapping[str, Array]) -> Fidelity:
    """Distance of one step's gradients from the reference's, by parameter name."""
    exact = {name: np.asarray(r, np.float64) for name, r in reference.items()}
    got = {name: np.asarray(g, np.float64) for name, g in gradient.items()}
    if not finite(got):
        return Fidelity(note="not finite")
    if not finite(exact):
        return Fidelity(note="the float64 reference is not finite here either")
    floor = NEGLIGIBLE * max(norm(r) for r in exact.values())
    if floor == 0:
        return Fidelity(note="the float64 reference is zero here")
    distance = {name: norm(got[name] - r) / max(norm(r), floor) for name, r in exact.items()}
    worst = max(distance, key=lambda name: distance[name])
    return Fidelity(distance[worst], worst)


def vanished(gradient: Mapping[str, Array], due: Mapping[str, Array]) -> tuple[str, ...]:
    """Parameters whose gradient is zero, or next to it, where what is due is not.

    Next to zero is below `VANISHED` of what is due and of the largest parameter's gradient: one
    that is clipped as a whole has not vanished.
    """
    if not (finite(gradient) and finite(due)):
        return ()
    owed = {name: norm(r) for name, r in due.items()}
    size = {name: norm(g) for name, g in gradient.items()}
    floor, largest = NEGLIGIBLE * max(owed.values()), max(size.values())
    return tuple(
        name
        for name in owed
        if owed[name] > floor
        and (size[name] == 0 or size[name] < VANISHED * min(owed[name], largest))
    )


def finite(gradients: Mapping[str, Array]) -> bool:
    return all(bool(np.isfinite(g).all()) for g in gradients.values())


def norm(array: Array) -> float:
    """2-norm of all entries, in float64; it cannot overflow before the result does."""
    array = np.asarray(array, np.float64)
    largest = float(np.max(np.abs(array), initial=0.0))
    return largest * float(np.linalg.norm((array / largest).ravel())) if largest > 0 else 0.0
