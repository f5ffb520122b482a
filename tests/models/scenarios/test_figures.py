"""What each scenario must show: how it breaks as posted, what mends it and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.training.health import nonfinite
from models.training.program import BAD

SEEDS = range(4)
CLIPPING = ("value", "norm", "global_norm")


def shares(trainer: Any, which: str) -> dict[str, float]:
    """Parameter → share of non-finite entries in its gradient at the latest step."""
    bad = nonfinite(getattr(trainer.last_rows, which)[-1]) / trainer.program.sizes
    return dict(zip(trainer.program.names, bad.tolist(), strict=True))


# seq2seq


@pytest.mark.parametrize("seed", SEEDS)
def test_seq2seq_as_posted_loses_the_encoder_and_only_the_encoder(
    make_trainer: Any, seed: int
) -> None:
    trainer = make_trainer("seq2seq", seed=seed)
    rows = trainer.advance(1)
    assert trainer.first_bad_step == 0
    assert np.isfinite(rows.loss[0])
    names = trainer.program.names
    assert [name.partition(".")[0] for name in names] == ["encoder"] * 9 + ["decoder"] * 11
    expected = {name: float(name.startswith("encoder")) for name in names}
    assert shares(trainer, "raw") == expected


@pytest.mark.parametrize("seed", [0, 1, 2])  # with seed 3 the encoder is NaN before clipping
def test_global_norm_clipping_turns_finite_gradients_into_nan(make_trainer: Any, seed: int) -> None:
    changes = {"hidden": 256, "seq_len": 40, "clipping": "global_norm", "seed": seed}
    trainer = make_trainer("seq2seq", **changes)
    trainer.advance(1)
    assert set(shares(trainer, "raw").values()) == {0.0}
    assert set(shares(trainer, "applied").values()) == {1.0}
    largest = trainer.last_rows.raw[0, :, 5].max()
    assert np.sqrt(np.finfo(np.float32).max) < largest < np.finfo(np.float32).max


def test_seq2seq_mended_is_finite_for_2000_steps_and_translates(
    make_trainer: Any, train: Any
) -> None:
    trainer = make_trainer("seq2seq", "mended")
    rows = train(trainer, 2000)
    assert len(rows.loss) == 2000
    assert not (rows.status == BAD).any()
    assert rows.loss[-50:].mean() <= 0.4 * rows.loss[0]
    assert trainer.outcome().metrics["training sentences right"] == 1.0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_seq2seq_mended_learns_from_any_seed(make_trainer: Any, train: Any, seed: int) -> None:
    trainer = make_trainer("seq2seq", "mended", seed=seed)
    rows = train(trainer, 600)
    assert trainer.first_bad_step is None
    assert rows.loss[-50:].mean() <= 0.4 * rows.loss[0]
    assert trainer.outcome().metrics["training sentences right"] >= 0.9


# basis_fit


@pytest.mark.parametrize("seed", SEEDS)
def test_basis_fit_as_posted_loses_the_attention_at_once(make_trainer: Any, seed: int) -> None:
    trainer = make_trainer("basis_fit", seed=seed)
    rows = trainer.advance(5)
    assert trainer.halted
    assert np.isfinite(rows.loss).all()
    assert {v for n, v in shares(trainer, "raw").items() if n.startswith("attention")} == {1.0}


@pytest.mark.parametrize("seed", SEEDS)
def test_basis_fit_away_from_zero_is_finite(make_trainer: Any, train: Any, seed: int) -> None:
    rows = train(make_trainer("basis_fit", x_low=0.01, seed=seed), 500)
    assert len(rows.loss) == 500
    assert not (rows.status == BAD).any()


def test_basis_fit_below_zero_loses_the_loss_too(make_trainer: Any) -> None:
    assert np.isnan(make_trainer("basis_fit", x_low=-1.0).advance(1).loss[0])


@pytest.mark.parametrize("seed", range(5))
def test_basis_fit_mended_is_finite_for_2000_steps_and_fits(
    make_trainer: Any, train: Any, seed: int
) -> None:
    trainer = make_trainer("basis_fit", "mended", seed=seed)
    rows = train(trainer, 2000)
    assert len(rows.loss) == 2000
    assert trainer.first_bad_step is None
    assert trainer.outcome().metrics["R²"] >= 0.99


# balanced_loss


@pytest.mark.parametrize("seed", SEEDS)
def test_balanced_loss_as_posted_runs_well_then_loses_all_gradients(
    make_trainer: Any, train: Any, seed: int
) -> None:
    trainer = make_trainer("balanced_loss", seed=seed)
    rows = train(trainer, 1000)
    assert trainer.first_bad_step is not None
    assert trainer.first_bad_step >= 20
    assert np.isfinite(rows.loss).all()
    assert rows.loss[-1] < rows.loss[0]
    assert list(shares(trainer, "raw").values()) == [1.0] * 6


@pytest.mark.parametrize("seed", SEEDS)
def test_balanced_loss_needs_only_a_larger_epsilon(
    make_trainer: Any, train: Any, seed: int
) -> None:
    rows = train(make_trainer("balanced_loss", epsilon=1e-7, seed=seed), 5000)
    assert len(rows.loss) == 5000
    assert not (rows.status == BAD).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_balanced_loss_mended_is_finite_for_2000_steps_and_classifies(
    make_trainer: Any, train: Any, seed: int
) -> None:
    trainer = make_trainer("balanced_loss", "mended", seed=seed)
    rows = train(trainer, 2000)
    assert len(rows.loss) == 2000
    assert trainer.first_bad_step is None
    assert trainer.outcome().metrics["balanced accuracy"] >= 0.93


# Clipping alone


@pytest.mark.parametrize("how", CLIPPING)
@pytest.mark.parametrize("name", ["seq2seq", "basis_fit", "balanced_loss"])
def test_clipping_alone_mends_nothing(make_trainer: Any, train: Any, name: str, how: str) -> None:
    trainer = make_trainer(name, clipping=how, clip_threshold=1.0)
    train(trainer, 1000)
    assert trainer.halted
    assert np.isfinite(trainer.last_rows.loss[-1])


def test_global_norm_clipping_spreads_nan_to_the_decoder(make_trainer: Any) -> None:
    trainer = make_trainer("seq2seq", clipping="global_norm", clip_threshold=5.0)
    trainer.advance(1)
    assert shares(trainer, "raw")["decoder.by"] == 0.0
    assert set(shares(trainer, "applied").values()) == {1.0}
