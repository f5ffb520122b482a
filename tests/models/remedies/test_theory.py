"""What theory says of each remedy of the three posts, measured."""

from __future__ import annotations

from typing import Any

import pytest

from models.remedies.result import Result
from models.scenarios import scenario

MENDS, DISTORTS = "mends", "mends but distorts the gradient"
DELAYS, NOTHING, WORSE = "only delays", "does nothing", "makes it worse"
HIDES = "hides it (zero gradient)"


def check(trials: Any, theory: dict[str, str]) -> dict[str, Result]:
    rows = {row.name: row for row in trials.results}
    assert {name: row.verdict for name, row in rows.items()} == theory
    return rows


def test_balanced_loss_as_posted(tried: Any) -> None:
    """ε = 1e-10 is lost in 1 − ε, and 0 · Inf of the untaken branch is NaN: whatever keeps 1 − p
    from 0, or its log out of the branch, mends."""
    rows = check(
        tried(scenario("balanced_loss"), steps=800),
        {
            "epsilon": MENDS,
            "from_logits": MENDS,
            "double_where": MENDS,
            "float64": MENDS,
            "product+epsilon": MENDS,
            "guarded_counts+epsilon": MENDS,
            "small_rate": DELAYS,
            "small_weights": DELAYS,
            "guarded_counts": NOTHING,
            "clip_norm": NOTHING,
            "product": WORSE,  # 0 · log 0 is NaN on the way forward, so the loss goes too
            "inverse_frequency": WORSE,  # larger weights, larger steps
        },
    )
    for name in ("epsilon", "from_logits", "double_where"):
        assert rows[name].fidelity.distance < 1e-6
    assert rows["float64"].fidelity.distance < 1e-12
    # Later, where predictions are sure, a clip rounds what a loss from logits keeps.
    at_end = {name: row.fidelity.at_end for name, row in rows.items()}
    assert at_end["from_logits"] < at_end["epsilon"]


def test_balanced_loss_without_a_class(tried: Any) -> None:
    """−1/0 is the first cause and ε the second, met once all predictions are sure."""
    trials = tried(scenario("balanced_loss"), steps=800, absent_class="negative")
    check(
        trials,
        {
            "guarded_counts": DELAYS,
            "guarded_counts+epsilon": MENDS,
            "double_where": MENDS,
            "inverse_frequency": HIDES,  # n0/total = 0: the present class weighs nothing
            "epsilon": NOTHING,
            "from_logits": NOTHING,
            "float64": NOTHING,
            "small_rate": NOTHING,
            "small_weights": NOTHING,
            "clip_norm": NOTHING,
            "product": WORSE,
            "product+epsilon": WORSE,
        },
    )


def test_basis_fit_as_posted(tried: Any) -> None:
    """The slope b · 0^(b−1) is infinite for b < 1: only the base or the bound on b matters."""
    rows = check(
        tried(scenario("basis_fit")),
        {
            "safe_offset": MENDS,
            "exp_log": MENDS,
            "sign_preserving": MENDS,
            "double_where": MENDS,
            "bounds_above_one": MENDS,
            "safe_offset+bounds": MENDS,
            "away_from_zero": MENDS,
            "bounds": NOTHING,
            "near_one": NOTHING,
            "attention_scaling": NOTHING,
            "layer_norm": NOTHING,
            "glorot": NOTHING,
            "adam_small": NOTHING,
            "global_norm": NOTHING,
            "check_numerics": NOTHING,
        },
    )
    away = rows["away_from_zero"]
    assert away.answers_another_question
    assert away.fidelity.note == "another question"
    assert "another question" in away.reason
    # max(x, ε) lifts 0^b to ε^b, a little; an exact 0 is not lifted.
    assert 1e-5 < rows["safe_offset"].fidelity.distance < 1e-2
    assert rows["double_where"].fidelity.distance < 1e-6


def test_seq2seq_as_posted(tried: Any) -> None:
    """The gradient passes float32's range inside the encoder: what keeps the factor per time step
    or the number of factors small mends, what comes after the fact does not."""
    rows = check(
        tried(scenario("seq2seq"), steps=5),
        {
            "glorot": MENDS,
            "orthogonal": MENDS,
            "mask_padding": MENDS,
            "short": MENDS,
            "float64": MENDS,
            "recurrent_clipping": DISTORTS,
            "hidden_once": DISTORTS,  # finite, but rounding has grown with the gradient
            "from_logits": NOTHING,
            "global_norm": NOTHING,
            "clip_value": NOTHING,
            "small_rate": NOTHING,
        },
    )
    assert rows["short"].answers_another_question
    assert rows["recurrent_clipping"].fidelity.distance == pytest.approx(1, abs=1e-3)
    assert "20 after clipping" in rows["global_norm"].reason
    assert rows["float64"].still > 0  # a first step of 1e53 has saturated every gate
