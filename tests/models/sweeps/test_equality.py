"""A cell equals the single run of its settings, whatever it was computed together with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.scenarios import scenario
from models.sweeps import part as part_module
from models.sweeps import together, vectorised
from models.sweeps.part import run_part
from models.sweeps.plan import Part, Sweep, parts
from models.sweeps.results import RunResult
from models.training.health import nonfinite
from models.training.program import draw_batch
from models.training.trainer import Trainer

LOSS = 1e-5  # relative


def alone(sweep: Sweep, result: RunResult) -> tuple[int | None, float, float, set[str]]:
    """First bad step, last loss, metric and what broke first, by the `Trainer`."""
    chosen, config = scenario(sweep.scenario), sweep.run_config(result.task)
    trainer = Trainer(chosen, config, chosen.load(config, None))
    while trainer.step < sweep.steps and not trainer.halted:
        rows = trainer.advance(sweep.steps - trainer.step)
    metric = next(iter(trainer.outcome().metrics.values()))
    bad = nonfinite(rows.raw[-1]) > 0
    if not bad.any():
        bad = nonfinite(rows.applied[-1]) > 0
    broke = {name for name, b in zip(trainer.program.names, bad, strict=True) if b}
    return trainer.first_bad_step, float(rows.loss[-1]), metric, broke


def run(sweep: Sweep) -> list[RunResult]:
    return [result for part in parts(sweep) for result in run_part(part)]


def assert_equal(sweep: Sweep, results: list[RunResult], samples: int = 6) -> None:
    chosen = np.random.default_rng(0).permutation(len(results))[:samples]
    for result in (results[i] for i in chosen):
        first_bad_step, loss, metric, broke = alone(sweep, result)
        assert result.first_bad_step == first_bad_step
        np.testing.assert_allclose(result.loss, loss, rtol=LOSS)
        np.testing.assert_allclose(result.metric, metric, rtol=1e-3, atol=1e-3)
        assert set(result.broke_first) == broke
        assert bool(result.mechanism) == (first_bad_step is not None)


CASES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "step knobs": (("epsilon=1e-12:1e-2:log:5", "learning_rate=1e-2:1:log:5"), {"steps": 60}),
    "weights and seeds": (
        ("weight_std=1e-2:1:log:4",),
        {"seeds": 3, "learning_rate": 0.5, "dtype": "float64"},
    ),
    "batches of seeds": (("learning_rate=1e-2:1:log:3",), {"seeds": 3, "batch_size": 32}),
    "graph knobs": (("dtype=float32,float64", "clipping=off,norm,global_norm"), {}),
    "optimisers": (("optimizer=sgd,momentum,adam", "learning_rate=1e-3:0.1:3"), {}),
    "16 bits": (("dtype=float16,bfloat16", "learning_rate=1e-3:0.1:3"), {"steps": 5}),
    "loss scaling": (("learning_rate=1e-3:0.1:3",), {"dtype": "float16", "loss_scaling": True}),
    "layer sizes": (("hidden_1=4,8", "learning_rate=1e-3:0.1:2"), {}),
}


@pytest.fixture
def never_singly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails where runs are not computed together."""
    monkeypatch.setattr(part_module, "run_singly", None)


@pytest.mark.usefixtures("never_singly")
@pytest.mark.parametrize("case", CASES)
def test_balanced_loss(make_sweep: Callable[..., Sweep], case: str) -> None:
    axes, options = CASES[case]
    sweep = make_sweep("balanced_loss", *axes, **options)
    results = run(sweep)
    assert {r.task for r in results} == set(sweep.tasks())
    assert_equal(sweep, results)


@pytest.mark.usefixtures("never_singly")
def test_basis_fit_with_data_of_their_own(make_sweep: Callable[..., Sweep]) -> None:
    sweep = make_sweep(
        "basis_fit", "x_low=-1:0.5:4", "learning_rate=1e-4:1:log:3", functions=2, points=16
    )
    results = run(sweep)
    assert {r.first_bad_step for r in results} > {0, None}
    assert_equal(sweep, results)


def test_a_check_in_the_graph_stops_no_other_run(make_sweep: Callable[..., Sweep]) -> None:
    sweep = make_sweep(
        "basis_fit", "x_low=0:0.5:2", check_numerics=True, functions=1, points=8, steps=5
    )
    by_index = {result.task.index: result for result in run(sweep)}
    assert by_index[0,].first_bad_step == 0
    assert by_index[1,].first_bad_step is None


@pytest.mark.usefixtures("never_singly")
def test_seq2seq(make_sweep: Callable[..., Sweep]) -> None:
    sweep = make_sweep(
        "seq2seq", "weight_std=0.1:2:log:3", "learning_rate=1e-3:1e-2:2",
        initialiser="std", hidden=16, seq_len=60, vocabulary=30, batch_size=4, steps=2,
    )  # fmt: skip
    assert_equal(sweep, run(sweep), samples=3)


def test_grouping_changes_nothing(make_sweep: Callable[..., Sweep]) -> None:
    sweep = make_sweep("balanced_loss", "learning_rate=1e-3:1:log:8", dtype="float64", steps=40)
    (part,) = parts(sweep)
    together_ = {r.task: r for r in run_part(part)}
    for task, config in zip(part.tasks, part.configs, strict=True):
        (single,) = run_part(Part(part.scenario, (task,), (config,), part.steps))
        assert single.first_bad_step == together_[task].first_bad_step
        np.testing.assert_allclose(single.loss, together_[task].loss, rtol=1e-12)


def test_what_cannot_be_mapped_is_run_singly(
    make_sweep: Callable[..., Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise vectorised.CannotMap

    sweep = make_sweep("balanced_loss", "learning_rate=1e-2:1:log:3", steps=30)
    expected = run(sweep)
    monkeypatch.setattr(together.Vectorised, "compile", refuse)
    results = {r.task: r for r in run(sweep)}
    for result in expected:
        assert results[result.task].first_bad_step == result.first_bad_step
        np.testing.assert_allclose(results[result.task].loss, result.loss, rtol=LOSS)
        assert results[result.task].broke_first == result.broke_first


def test_slow_steps_are_taken_for_some_runs_at_a_time(
    make_sweep: Callable[..., Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = make_sweep("balanced_loss", "learning_rate=1e-2:1:log:5", steps=30)
    expected = {r.task: r for r in run(sweep)}
    monkeypatch.setattr(together, "SLOWEST_STEP", 0.0)
    results = run(sweep)
    assert {r.task for r in results} == set(expected)
    for result in results:
        assert result.first_bad_step == expected[result.task].first_bad_step


def test_batches_are_those_of_single_runs() -> None:
    rows = np.arange(40.0).reshape(20, 2)
    many = vectorised.Many(
        state=vectorised.State(np.array([0, 3, 11]), [], []),
        knobs={"seed": np.array([0, 5, 9])},
        bad=np.zeros(3, bool), loss=None, finite=None, data={},
    )  # fmt: skip
    drawn = vectorised.draw_batches(many, {"x": rows}, 6)["x"].numpy()
    own = many._replace(data={"x": np.stack([rows] * 3)})
    np.testing.assert_array_equal(vectorised.draw_batches(own, {}, 6)["x"], drawn)
    for run_, step, seed in zip(drawn, many.state.step, many.knobs["seed"], strict=True):
        np.testing.assert_array_equal(draw_batch({"x": rows}, step, 6, seed)["x"], run_)


def test_what_is_mapped_wrongly_is_run_singly(
    make_sweep: Callable[..., Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = make_sweep("balanced_loss", "learning_rate=1e-2:1:log:3", batch_size=24, steps=10)
    right = vectorised.draw_batches

    def wrong(*arguments: Any) -> Any:
        return {name: array[:, ::-1] * 0.5 for name, array in right(*arguments).items()}

    monkeypatch.setattr(vectorised, "draw_batches", wrong)
    monkeypatch.setattr(together, "vectorised", vectorised.Vectorised)
    assert_equal(sweep, run(sweep))
