"""A program stops at the bad step, skips it or carries on, and never touches what it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.lazy import tf
from models.training.program import BAD, FINE, RESCALED, draw_batch

SameBits = Callable[[Any, Any], bool]
FAST = {"learning_rate": 0.5}  # breaks within the first 60 steps
# Gradients of several hundred, times 2^15, are beyond float16's 65,504.
SCALED = {"dtype": "float16", "loss_scaling": True, "initialiser": "unit_normal"}


@pytest.fixture
def broken(make_trainer: Any) -> Any:
    trainer = make_trainer("balanced_loss", **FAST)
    trainer.advance(200)
    assert trainer.halted
    return trainer


def burst(trainer: Any, steps: int, *, stop: bool, state: Any = None, **knobs: Any) -> Any:
    train = trainer.program.tensors(trainer.dataset.train)
    config = trainer.config | knobs
    start = trainer.state if state is None else state
    return trainer.program.burst(start, config, train, steps, stop_at_bad=stop)


def test_the_burst_ends_at_the_bad_step_with_the_state_before_it(
    broken: Any, make_trainer: Any, same_bits: SameBits
) -> None:
    bad = broken.first_bad_step
    fresh = make_trainer("balanced_loss", **FAST)
    state, rows = burst(fresh, 200, stop=True)
    assert rows.step.tolist() == list(range(bad + 1))
    assert rows.status.tolist() == [FINE] * bad + [BAD]
    before, _ = burst(fresh, bad, stop=True)
    assert same_bits(tuple(state), tuple(before))
    assert int(state.step) == bad


def test_skipping_leaves_parameters_and_optimiser_untouched(
    broken: Any, same_bits: SameBits
) -> None:
    state, rows = burst(broken, 3, stop=False, on_bad="skip")
    assert rows.status.tolist() == [BAD] * 3
    assert int(state.step) == broken.step + 3
    assert same_bits(list(state.parameters), list(broken.state.parameters))
    assert same_bits(list(state.optimizer), list(broken.state.optimizer))


def test_carrying_on_applies_the_bad_gradient(broken: Any) -> None:
    state, rows = burst(broken, 2, stop=False, on_bad="continue")
    assert rows.status.tolist() == [BAD] * 2
    assert all(np.isnan(p.numpy()).all() for p in state.parameters)
    assert np.isnan(rows.loss[1])


def test_an_overflow_under_loss_scaling_halves_the_scale_and_skips(
    make_trainer: Any, same_bits: SameBits
) -> None:
    trainer = make_trainer("seq2seq", "mended", **SCALED)
    scale = trainer.program.loss_scale(trainer.state)
    state, rows = burst(trainer, 1, stop=True)
    assert scale == 2.0**15
    assert rows.status.tolist() == [RESCALED]
    assert trainer.program.loss_scale(state) == scale / 2
    assert same_bits(list(state.parameters), list(trainer.state.parameters))
    assert int(state.step) == 1


def test_loss_scaling_finds_a_scale_that_works(make_trainer: Any) -> None:
    trainer = make_trainer("seq2seq", "mended", **SCALED)
    rows = trainer.advance(30)
    assert (rows.status == FINE).sum() > 10
    assert trainer.first_bad_step is None
    assert trainer.program.loss_scale(trainer.state) == 2.0 ** (15 - trainer.rescaled_steps)
    assert trainer.rescaled_steps == np.sum(rows.status == RESCALED) > 0


def test_health_is_in_units_of_the_unscaled_loss(make_trainer: Any) -> None:
    largest = []
    for scaling in (False, True):
        trainer = make_trainer("balanced_loss", dtype="bfloat16", loss_scaling=scaling)
        largest.append(trainer.advance(1).raw[0, :, 5])
    np.testing.assert_allclose(largest[0], largest[1], rtol=0.02)


def test_without_monitoring_the_same_steps_are_taken(
    make_trainer: Any, same_bits: SameBits
) -> None:
    trainer = make_trainer("balanced_loss")
    train = trainer.program.tensors(trainer.dataset.train)
    arguments = (trainer.state, trainer.config, train, 50)
    state, rows = trainer.program.burst(*arguments, stop_at_bad=True)
    bare_state, bare = trainer.program.burst(*arguments, stop_at_bad=True, monitor=False)
    assert same_bits(tuple(state), tuple(bare_state))
    assert same_bits(rows.loss, bare.loss)
    assert bare.raw.shape == (50, 0, 7)


def test_update_ratio_is_update_over_weights(make_trainer: Any) -> None:
    trainer = make_trainer("balanced_loss", "mended")
    before = [p.numpy().astype(np.float64) for p in trainer.state.parameters]
    rows = trainer.advance(1)
    after = [p.numpy().astype(np.float64) for p in trainer.state.parameters]
    for measured, old, new in zip(rows.update_ratio[0], before, after, strict=True):
        if np.any(old):
            assert measured == pytest.approx(
                np.linalg.norm(new - old) / np.linalg.norm(old), rel=1e-5
            )
        else:
            assert np.isnan(measured)


def test_gradients_in_full_are_those_that_were_measured(make_trainer: Any) -> None:
    trainer = make_trainer("seq2seq", "mended", clip_threshold=0.1)
    gradients = trainer.gradients()
    rows = trainer.advance(1)
    assert gradients.loss == rows.loss[0]
    for which in ("raw", "applied"):
        norms = [np.linalg.norm(g.astype(np.float64)) for g in getattr(gradients, which).values()]
        np.testing.assert_allclose(getattr(rows, which)[0, :, 6], norms, rtol=1e-12)
    total = np.sqrt(np.sum(rows.applied[0, :, 6] ** 2))
    assert total == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize("seed", [0, 7])
def test_an_epoch_shows_every_row_that_fits_once(seed: int) -> None:
    train = {"row": tf.range(23), "square": tf.range(23) ** 2}
    for epoch in range(3):
        steps = [tf.constant(5 * epoch + i, tf.int64) for i in range(5)]
        batches = [draw_batch(train, s, 4, tf.constant(seed, tf.int64)) for s in steps]
        rows = np.concatenate([b["row"].numpy() for b in batches])
        assert len(set(rows)) == 20
        squares = np.concatenate([b["square"].numpy() for b in batches])
        assert np.array_equal(squares, rows**2)


def test_epochs_and_seeds_differ_and_steps_repeat() -> None:
    train = {"row": tf.range(100)}

    def rows(step: int, seed: int) -> list[int]:
        drawn = draw_batch(train, tf.constant(step, tf.int64), 10, tf.constant(seed, tf.int64))
        return list(drawn["row"].numpy())

    assert rows(3, 0) == rows(3, 0)
    assert rows(3, 0) != rows(13, 0)
    assert rows(3, 0) != rows(3, 1)


@pytest.mark.parametrize("size", [0, 100, 512])
def test_a_batch_of_all_rows_keeps_their_order(size: int) -> None:
    train = {"row": tf.range(100)}
    drawn = draw_batch(train, tf.constant(5, tf.int64), size, tf.constant(0, tf.int64))
    assert np.array_equal(drawn["row"].numpy(), np.arange(100))


@pytest.mark.parametrize("clipping", ["off", "global_norm"])
def test_looking_before_each_update_and_going_back_afterwards_end_alike(
    make_trainer: Any, same_bits: SameBits, clipping: str
) -> None:
    """`skip` looks before each update; `halt` runs on and goes back to the state before the bad
    step. Both must stop at the same step, in the same state, having measured the same."""
    knobs = {"clipping": clipping, "clip_threshold": 0.1, **FAST}
    before, afterwards = (
        make_trainer("balanced_loss", on_bad=on_bad, **knobs) for on_bad in ("skip", "halt")
    )
    (state, rows), (other_state, other_rows) = (
        burst(trainer, 200, stop=True) for trainer in (before, afterwards)
    )
    assert len(rows.step) < 200
    assert same_bits(state, other_state)
    assert same_bits(tuple(rows[:-1]), tuple(other_rows[:-1]))


def test_a_long_burst_in_parts_is_the_same_burst(
    make_trainer: Any, monkeypatch: pytest.MonkeyPatch, same_bits: SameBits
) -> None:
    whole, parts = make_trainer("balanced_loss", **FAST), make_trainer("balanced_loss", **FAST)
    state, rows = burst(whole, 200, stop=True)
    monkeypatch.setattr(parts.program, "_longest", 7)
    other_state, other_rows = burst(parts, 200, stop=True)
    assert same_bits(state, other_state)
    assert same_bits(tuple(rows[:-1]), tuple(other_rows[:-1]))  # all but the update ratio


def test_the_update_ratio_is_that_of_the_last_step(make_trainer: Any) -> None:
    trainer = make_trainer("balanced_loss", **FAST)
    before, _ = burst(trainer, 4, stop=True)
    after, rows = burst(trainer, 5, stop=True)
    assert np.isnan(rows.update_ratio[:-1]).all()
    for p, (old, new) in enumerate(zip(before.parameters, after.parameters, strict=True)):
        update = np.float64(new) - np.float64(old)
        expected = np.linalg.norm(update) / np.linalg.norm(np.float64(old))
        assert rows.update_ratio[-1, p] == pytest.approx(expected, rel=1e-6)
