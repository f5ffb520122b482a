"""Trials of a toy whose verdicts can be worked out on paper, and how they run."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from models.errors import BadInput
from models.remedies.result import Result
from models.remedies.trials import Trials
from models.scenarios.contract import Scenario

BROKE = 10  # 1 − 10 · 0.01 reaches the threshold 0.9 (the small root only adds to it)


@pytest.fixture(scope="module")
def rows(tried: Any, toy: Scenario) -> dict[str, Result]:
    trials = tried(toy, start=1.0)
    return {r.name: r for r in [trials.untouched, *trials.results]}


def test_the_untouched_run_breaks_where_theory_says(rows: dict[str, Result]) -> None:
    untouched = rows["untouched"]
    assert untouched.first_bad_step == BROKE
    assert untouched.loss == pytest.approx(0.9, abs=1e-3)
    assert untouched.metric == pytest.approx(0.9, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("safe", "mends"),
        ("triple", "mends but distorts the gradient"),
        ("frozen", "hides it (zero gradient)"),
        ("slow", "only delays"),
        ("glacial", "only delays"),
        ("clip", "does nothing"),
        ("higher", "makes it worse"),
        ("rows", "could not be tried"),
        ("below", "mends"),
        ("high", "only delays"),
        ("triple+clip", "mends but distorts the gradient"),
    ],
)
def test_verdicts(rows: dict[str, Result], name: str, verdict: str) -> None:
    assert rows[name].verdict == verdict


def test_a_remedy_that_changes_nothing_is_not_tried(rows: dict[str, Result]) -> None:
    assert "posted" not in rows
    assert "second_safe" in rows  # it adds a term


def test_a_slower_run_breaks_later_by_the_ratio_of_the_rates(rows: dict[str, Result]) -> None:
    assert rows["slow"].first_bad_step == pytest.approx(5 * BROKE, abs=1)


def test_what_never_came_as_far_is_not_called_mended(rows: dict[str, Result]) -> None:
    glacial = rows["glacial"]
    assert glacial.first_bad_step is None
    assert glacial.fidelity.note == "not finite"
    assert "has not come as far" in glacial.reason


def test_fidelity_is_the_relative_distance(rows: dict[str, Result]) -> None:
    assert rows["safe"].fidelity.distance == pytest.approx(0, abs=1e-6)
    assert rows["triple"].fidelity.distance == pytest.approx(2.0, rel=1e-6)
    assert rows["triple"].fidelity.parameter == "w"
    assert rows["frozen"].fidelity.hidden == ("w",)


def test_another_question_has_no_fidelity(rows: dict[str, Result]) -> None:
    below = rows["below"]
    assert below.answers_another_question
    assert below.fidelity.distance is None
    assert below.fidelity.note == "another question"
    assert below.reason.endswith("it answers another question.")


def test_only_the_same_loss_can_be_compared(rows: dict[str, Result]) -> None:
    assert rows["safe"].comparable
    assert rows["triple"].comparable  # the reference names the form
    assert rows["second_safe"].comparable is None  # it broke with the untouched run


def test_a_knob_that_cannot_be_is_told_in_its_own_words(rows: dict[str, Result]) -> None:
    assert rows["rows"].reason == "13 rows are not to be had."
    assert rows["rows"].evidence is None


def test_evidence_is_both_histories(rows: dict[str, Result]) -> None:
    untouched, remedy = rows["safe"].evidence or (None, None)
    assert untouched is not None
    assert remedy is not None
    assert untouched.last_step[-1] == BROKE
    assert untouched.applied.nan[0, -1] == 1
    assert remedy.last_step[-1] == 199
    assert len(remedy.last_step) <= 64
    assert not remedy.applied.nonfinite.any()


def test_costs_are_of_one_order(rows: dict[str, Result]) -> None:
    costs = [row.cost for row in rows.values() if row.cost is not None]
    assert len(costs) == len(rows) - 1
    assert all(0.1 < cost < 10 for cost in costs)


def test_the_best_come_first(tried: Any, toy: Scenario, rows: dict[str, Result]) -> None:
    names = list(rows)[1:]
    assert names[0] == "safe"
    assert names[-1] == "rows"
    assert names.index("below") < names.index("triple") < names.index("slow")


def test_advice_that_circulates_and_fails_is_marked(rows: dict[str, Result]) -> None:
    assert rows["clip"].circulates_but_fails
    assert not rows["safe"].circulates_but_fails


def test_two_traps_need_two_remedies(tried: Any, toy: Scenario) -> None:
    """With a second trap at 0.85 nothing mends alone; pairs are tried, and the right one mends."""
    trials = tried(toy, second="masked")
    rows = {r.name: r for r in trials.results}
    assert rows["safe"].verdict == "only delays"
    assert rows["second_safe"].verdict == "does nothing"
    assert rows["safe+second_safe"].verdict == "mends"
    assert trials.progress == (len(rows), len(rows))


def test_where_nothing_breaks_nothing_is_mended(tried: Any, toy: Scenario) -> None:
    trials = tried(toy, steps=5)
    rows = {r.name: r for r in trials.results}
    assert trials.untouched.first_bad_step is None
    assert rows["safe"].verdict == rows["clip"].verdict == "does nothing"
    assert rows["higher"].verdict == "makes it worse"
    assert rows["frozen"].verdict == "makes it worse"


def test_rows_can_be_told_as_plain_values(rows: dict[str, Result]) -> None:
    row = rows["safe"].as_dict()
    assert {"name", "knobs", "first_bad_step", "final_loss", "metric"} <= row.keys()
    assert {"fidelity", "cost", "verdict", "reason"} <= row.keys()
    assert row["first_bad_step"] is None
    assert row["knobs"] == {"form": "double_where"}


# How they run.


def begin(toy: Scenario, **options: Any) -> Trials:
    config = toy.config("as-posted")
    return Trials(toy, config, toy.load(config, None), **options)


def test_results_come_one_by_one_and_the_untouched_run_first(toy: Scenario) -> None:
    called: list[Result] = []
    trials = begin(toy, on_result=called.append)
    trials.start()
    came = list(trials)
    trials.wait(60)
    assert came[0].name == "untouched"
    assert {r.name for r in came} == {r.name for r in called}
    assert trials.progress == (len(came) - 1, len(came) - 1)
    assert not trials.running
    assert trials.now == ()


def test_what_the_diagnosis_proposes_comes_first(toy: Scenario) -> None:
    pool = ThreadPoolExecutor(1)
    trials = begin(toy, proposed=["triple", "safe"], executor=pool)
    trials.start()
    came = [r for r in trials if r.name != "untouched"]
    assert {r.name for r in came[:2]} == {"triple", "safe"}
    assert [r.name for r in came if r.proposed] == [r.name for r in came[:2]]
    pool.shutdown()


def test_an_unknown_proposal_is_refused(toy: Scenario) -> None:
    with pytest.raises(BadInput, match="no remedy “magic”; it has safe, triple"):
        begin(toy, proposed=["magic"])


def test_what_is_done_stays_when_stopped(toy: Scenario) -> None:
    stopped = threading.Event()

    def stop_at_the_third(result: Result) -> None:
        if len(trials.results) == 3:
            trials.stop()
            stopped.set()

    trials = begin(toy, on_result=stop_at_the_third)
    trials.start()
    assert stopped.wait(60)
    assert trials.wait(60)
    done, total = trials.progress
    assert 3 <= done <= 4 < total  # the other lane may have been about to finish one
    assert len(trials.results) == done
    assert not trials.running
    time.sleep(0.2)
    assert trials.progress == (done, total)


def test_stopping_before_anything_is_known(toy: Scenario) -> None:
    trials = begin(toy)
    trials.start()
    trials.stop()
    assert trials.wait(60)
    assert trials.results == []
    assert list(trials) == [] or trials.untouched is not None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_ends_the_trials_and_is_told(toy: Scenario, capsys: Any) -> None:
    def fail(result: Result) -> None:
        raise RuntimeError("no more")

    trials = begin(toy, on_result=fail)
    trials.start()
    assert trials.wait(60)
    assert trials.error == "RuntimeError: no more"
    assert "no more" in capsys.readouterr().err


def test_the_same_seed_gives_the_same_table(tried: Any, toy: Scenario, rows: Any) -> None:
    again = {r.name: r for r in tried(toy, start=1.0).results}
    for name, row in again.items():
        np.testing.assert_equal(
            [row.verdict, row.first_bad_step, row.loss, row.fidelity],
            [rows[name].verdict, rows[name].first_bad_step, rows[name].loss, rows[name].fidelity],
        )
