"""Fidelity: the reference is the gradient of the loss that was meant, told by finite differences,
and distances are what they are by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.remedies.fidelity import (
    Fidelity,
    Place,
    compare,
    gradient_at,
    norm,
    reference_config,
    vanished,
)
from models.scenarios import scenario

SMALL: dict[str, dict[str, Any]] = {
    "balanced_loss": {"hidden_1": 3, "hidden_2": 2, "weight_std": 0.5},
    "basis_fit": {"points": 8, "functions": 4},
    "seq2seq": {
        "hidden": 4,
        "seq_len": 8,
        "vocabulary": 20,
        "batch_size": 4,
        "initialiser": "glorot",
    },
}


def set_up(name: str, **changes: Any) -> tuple[Any, dict[str, Any], Any, Place]:
    chosen = scenario(name)
    config = chosen.config("as-posted", SMALL[name] | changes)
    dataset = chosen.load(config, None)
    parameters = chosen.initialise(config, dataset, np.random.default_rng(1))
    return chosen, config, dataset, Place(0, parameters)


@pytest.mark.parametrize("name", SMALL)
def test_the_reference_is_the_derivative_of_its_loss(name: str) -> None:
    """Along a random direction in each parameter: (L(θ + hv) − L(θ − hv)) / 2h = g · v."""
    chosen, config, dataset, place = set_up(name)
    config = reference_config(chosen, config)
    gradient = gradient_at(chosen, config, dataset, place).raw
    rng, h = np.random.default_rng(2), 1e-6
    for parameter, value in place.parameters.items():
        direction = rng.normal(size=value.shape)

        def loss_at(shift: float, parameter: str = parameter, v: Any = direction) -> float:
            moved = dict(place.parameters) | {parameter: place.parameters[parameter] + shift * v}
            return gradient_at(chosen, config, dataset, Place(0, moved)).loss

        difference = (loss_at(h) - loss_at(-h)) / (2 * h)
        expected = float(np.sum(gradient[parameter] * direction))
        assert difference == pytest.approx(expected, rel=1e-5, abs=1e-9), parameter


@pytest.mark.parametrize("name", SMALL)
def test_the_reference_is_of_the_same_mathematical_loss(name: str) -> None:
    """As posted in float64, away from trouble, value and gradient are the reference's."""
    changes = {"x_low": 0.1} if name == "basis_fit" else {}
    chosen, config, dataset, place = set_up(name, **changes)
    posted = gradient_at(chosen, config | {"dtype": "float64"}, dataset, place)
    reference = gradient_at(chosen, reference_config(chosen, config), dataset, place)
    assert posted.loss == pytest.approx(reference.loss, rel=1e-9)
    assert compare(posted.raw, reference.raw).distance < 1e-7


def test_the_reference_has_a_gradient_where_the_posted_one_has_none() -> None:
    """At x = 0, (a·0)^b is 0 whatever a and b are, so that sample has no slope along them."""
    chosen, config, dataset, place = set_up("basis_fit")
    assert dataset.train["x"][0] == 0
    posted = gradient_at(chosen, config | {"dtype": "float64"}, dataset, place)
    reference = gradient_at(chosen, reference_config(chosen, config), dataset, place)
    assert posted.loss == pytest.approx(reference.loss, rel=1e-12)
    assert compare(posted.raw, reference.raw).note == "not finite"
    assert all(np.isfinite(g).all() for g in reference.raw.values())


def test_a_loss_without_a_value_has_no_reference() -> None:
    """x < 0 has no fractional power: not even in float64."""
    chosen, config, dataset, place = set_up("basis_fit", x_low=-1.0)
    reference = gradient_at(chosen, reference_config(chosen, config), dataset, place)
    mended = gradient_at(chosen, config | {"power": "sign_preserving"}, dataset, place)
    note = compare(mended.applied, reference.raw).note
    assert note == "the float64 reference is not finite here either"


def test_an_absent_class_has_a_reference() -> None:
    """Its empty sum counts as 0: only the rows of the other class pull."""
    chosen, config, dataset, place = set_up("balanced_loss", absent_class="positive")
    reference = gradient_at(chosen, reference_config(chosen, config), dataset, place)
    assert all(np.isfinite(g).all() for g in reference.raw.values())
    assert math.isfinite(reference.loss)


def test_loss_from_logits_alone_is_faithful_at_a_confident_mistake() -> None:
    """At logit ≈ 40 and y = 0 the slope by the logit is 1/2n0 a row. A clip has none: it hides."""
    chosen, config, dataset, place = set_up("balanced_loss", absent_class="positive")
    config["guarded_counts"] = True
    sure = {**place.parameters, "b3": np.array([40.0]), "W3": np.zeros((2, 1))}
    place = Place(0, sure)
    reference = gradient_at(chosen, reference_config(chosen, config), dataset, place).raw
    np.testing.assert_allclose(reference["b3"], 0.5, rtol=1e-12)
    clipped = gradient_at(chosen, config | {"epsilon": 1e-7}, dataset, place).applied
    from_logits = gradient_at(chosen, config | {"from_logits": True}, dataset, place).applied
    assert vanished(clipped, reference) == ("W3", "b3")
    assert vanished(from_logits, reference) == ()
    assert compare(from_logits, reference).distance < 1e-6


def test_clipping_counts_as_part_of_the_gradient() -> None:
    chosen, config, dataset, place = set_up("balanced_loss")
    clipped = config | {"clipping": "global_norm", "clip_threshold": 1e-4}
    gradient = gradient_at(chosen, clipped, dataset, place).applied
    reference = gradient_at(chosen, reference_config(chosen, clipped), dataset, place).raw
    whole = math.sqrt(sum(norm(r) ** 2 for r in reference.values()))
    assert compare(gradient, reference).distance == pytest.approx(1 - 1e-4 / whole, rel=1e-4)
    assert vanished(gradient, reference) == ()


# By hand.


def test_ranks_go_by_distance_beyond_rounding_and_then_by_the_end() -> None:
    exact, clipped = Fidelity(4e-7, "W", at_end=1e-7), Fidelity(3e-7, "W", at_end=1e-4)
    rounded, unknown = Fidelity(1e-3, "W", at_end=0.0), Fidelity(note="not finite")
    assert sorted([unknown, rounded, clipped, exact], key=lambda f: f.rank) == [
        exact,
        clipped,
        rounded,
        unknown,
    ]


def test_the_worst_parameter_is_named() -> None:
    reference = {"a": np.array([3.0, 4.0]), "b": np.array([2.0])}
    gradient = {"a": np.array([3.0, 4.5]), "b": np.array([1.0])}
    fidelity = compare(gradient, reference)
    assert fidelity.parameter == "b"
    assert fidelity.distance == pytest.approx(0.5)


def test_rounding_of_a_negligible_parameter_does_not_count() -> None:
    reference = {"a": np.array([1.0]), "b": np.array([0.0])}
    gradient = {"a": np.array([1.0]), "b": np.array([1e-12])}
    assert compare(gradient, reference).distance == pytest.approx(1e-3)


def test_a_reference_of_zero_is_told() -> None:
    zero = {"a": np.zeros(3)}
    assert compare(zero, zero).note == "the float64 reference is zero here"


def test_a_gradient_that_is_far_too_small_has_vanished() -> None:
    due = {"a": np.array([1e40]), "b": np.array([1.0]), "c": np.array([0.0])}
    assert vanished({"a": np.array([1.0]), "b": np.array([1.0]), "c": np.zeros(1)}, due) == ()
    due = {"a": np.array([1.0]), "b": np.array([1.0])}
    assert vanished({"a": np.array([1e-8]), "b": np.array([1.0])}, due) == ("a",)
    assert vanished({"a": np.zeros(1), "b": np.zeros(1)}, due) == ("a", "b")


@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=9), st.integers(-150, 150))
def test_the_norm_scales_and_does_not_overflow(values: list[float], exponent: int) -> None:
    scale = 10.0**exponent
    expected = math.hypot(*(v * scale for v in values))
    assert norm(np.array(values) * scale) == pytest.approx(expected, rel=1e-9)
