"""A run: what it does at a bad step, what it keeps, and when a knob acts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.errors import BadInput
from models.training.program import BAD
from models.training.trainer import KEPT_SNAPSHOTS

SameBits = Callable[[Any, Any], bool]
FAST = {"learning_rate": 0.5}


def test_halting_again_tries_the_same_step_anew(make_trainer: Any, same_bits: SameBits) -> None:
    trainer = make_trainer("balanced_loss", **FAST)
    first = trainer.advance(200).last()
    again = trainer.advance(200)
    assert again.step.tolist() == [trainer.first_bad_step] == [trainer.step]
    assert same_bits(tuple(again), tuple(first))
    assert len(trainer.snapshots) == 1


def test_a_halted_run_goes_on_when_a_knob_mends_it(make_trainer: Any) -> None:
    trainer = make_trainer("balanced_loss", **FAST)
    trainer.advance(200)
    trainer.change({"epsilon": 1e-4})
    rows = trainer.advance(50)
    assert not trainer.halted
    assert rows.step[0] == trainer.first_bad_step
    assert (rows.status != BAD).all()


def test_a_changed_knob_acts_on_the_very_next_step(make_trainer: Any, same_bits: Any) -> None:
    trainer = make_trainer("balanced_loss", "mended")
    trainer.advance(7)
    gradients = trainer.gradients().applied
    before = [p.numpy() for p in trainer.state.parameters]
    trainer.change({"learning_rate": 0.25})
    trainer.advance(1)
    for old, new, gradient in zip(
        before, trainer.state.parameters, gradients.values(), strict=True
    ):
        np.testing.assert_allclose(new.numpy(), old - np.float32(0.25) * gradient, rtol=1e-5)
    assert trainer.history.view().marks == ((7, "Learning rate: 0.25"),)


def test_a_knob_moved_while_live_gives_the_run_of_that_knob(
    make_trainer: Any, same_bits: SameBits
) -> None:
    moved = make_trainer("balanced_loss", epsilon=1e-3)
    moved.change({"epsilon": 1e-7})
    moved.advance(20)
    straight = make_trainer("balanced_loss", epsilon=1e-7)
    straight.advance(20)
    assert same_bits(tuple(moved.state), tuple(straight.state))


def test_a_structural_knob_needs_a_new_trainer(make_trainer: Any) -> None:
    trainer = make_trainer("balanced_loss")
    with pytest.raises(ValueError, match="dtype is structural"):
        trainer.change({"dtype": "float64"})


def test_a_knob_out_of_range_is_refused(make_trainer: Any) -> None:
    trainer = make_trainer("balanced_loss")
    with pytest.raises(BadInput, match="Learning rate"):
        trainer.change({"learning_rate": -1.0})
    assert trainer.config["learning_rate"] == 0.05


@pytest.mark.parametrize("on_bad", ["skip", "continue"])
def test_snapshots_are_bounded_and_keep_the_first(make_trainer: Any, on_bad: str) -> None:
    trainer = make_trainer("basis_fit", on_bad=on_bad)
    taken = np.concatenate([trainer.advance(5).step for _ in range(20)])
    assert taken.tolist() == list(range(trainer.step))
    assert trainer.bad_steps == trainer.step
    assert len(trainer.snapshots) <= KEPT_SNAPSHOTS
    assert [s.step for s in trainer.snapshots[: KEPT_SNAPSHOTS // 2]] == list(range(8))


def test_late_snapshots_move_on(make_trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.training.trainer.SECONDS_BETWEEN_SNAPSHOTS", 0.0)
    trainer = make_trainer("basis_fit", on_bad="skip")
    for _ in range(40):
        trainer.advance(1)
    steps = [s.step for s in trainer.snapshots]
    assert steps == [*range(8), *range(32, 40)]


@pytest.mark.parametrize("on_bad", ["halt", "skip", "continue"])
def test_a_snapshot_replays_its_own_rows(
    make_trainer: Any, same_bits: SameBits, on_bad: str
) -> None:
    trainer = make_trainer("balanced_loss", on_bad=on_bad, **FAST)
    trainer.advance(200)
    snapshot = trainer.snapshots[0]
    data = trainer.program.tensors(trainer.dataset.train)
    _, rows = trainer.program.burst(snapshot.state, snapshot.config, data, 1, stop_at_bad=True)
    assert same_bits(tuple(rows), tuple(snapshot.rows))
    assert snapshot.step == trainer.first_bad_step


def test_skipping_and_carrying_on_take_the_asked_number_of_steps(make_trainer: Any) -> None:
    trainer = make_trainer("balanced_loss", on_bad="skip", **FAST)
    while trainer.step < 100:
        trainer.advance(100 - trainer.step)
    view = trainer.history.view()
    assert view.first_step[0] == 0
    assert view.last_step[-1] == 99
    assert trainer.bad_steps == 100 - trainer.first_bad_step


def test_check_numerics_stops_and_names_the_transform(make_trainer: Any) -> None:
    trainer = make_trainer("basis_fit", check_numerics=True)
    rows = trainer.advance(20)
    assert trainer.halted
    assert rows.status.tolist() == [BAD]
    assert "check_numerics after inner power" in trainer.snapshots[0].message
    assert trainer.first_bad_step == trainer.step == 0


def test_check_numerics_changes_no_number_of_a_healthy_run(
    make_trainer: Any, same_bits: SameBits
) -> None:
    plain, watched = (
        make_trainer("basis_fit", "mended", check_numerics=on) for on in (False, True)
    )
    assert same_bits(tuple(plain.advance(15)), tuple(watched.advance(15)))


def test_check_numerics_in_the_middle_of_a_burst_loses_no_step(make_trainer: Any) -> None:
    """Starts healthy at x ≥ 0.01 and is sent over the edge by a large rate."""
    knobs = {"x_low": 0.01, "learning_rate": 0.3}
    plain = make_trainer("basis_fit", **knobs)
    watched = make_trainer("basis_fit", check_numerics=True, **knobs)
    expected, rows = plain.advance(300), watched.advance(300)
    assert plain.halted
    assert watched.halted
    assert plain.first_bad_step > 0
    assert rows.step.tolist() == list(range(len(rows.step)))
    assert np.array_equal(rows.loss[:-1], expected.loss[: len(rows.loss) - 1])


def test_skipping_past_a_check_takes_the_step_without_it(make_trainer: Any) -> None:
    trainer = make_trainer("basis_fit", check_numerics=True, on_bad="skip")
    assert trainer.advance(3).step.tolist() == [0]
    assert trainer.advance(3).step.tolist() == [1]
    assert trainer.bad_steps == 2


def test_two_runs_of_one_program_do_not_meet(make_trainer: Any, same_bits: SameBits) -> None:
    alone = make_trainer("balanced_loss", "mended")
    alone.advance(30)
    one, other = make_trainer("balanced_loss", "mended"), make_trainer("balanced_loss", "mended")
    assert one.program is other.program
    other.change({"learning_rate": 1.0})
    for _ in range(30):
        one.advance(1)
        other.advance(1)
    assert same_bits(tuple(one.state), tuple(alone.state))
