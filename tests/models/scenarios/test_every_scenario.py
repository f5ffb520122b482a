"""What every scenario must pass; a new one is found and tested without a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.errors import BadInput
from models.scenarios import scenario, scenarios
from models.scenarios.contract import Curves, Listing, Matrix, Scenario
from models.training.health import nonfinite
from models.training.program import Rows

NAMES = list(scenarios())
STEPS_TO_A_BAD_ONE = 1000

every_scenario = pytest.mark.parametrize("name", NAMES)
every_remedy = pytest.mark.parametrize(
    ("name", "remedy"),
    [
        pytest.param(s.name, r, id=f"{s.name}-{r.name}")
        for s in scenarios().values()
        for r in s.remedies
    ],
)
every_preset = pytest.mark.parametrize(
    ("name", "preset"), [(s.name, p.name) for s in scenarios().values() for p in s.presets]
)


def test_the_three_scenarios_are_found() -> None:
    assert {"seq2seq", "basis_fit", "balanced_loss"} <= set(NAMES)


def test_an_unknown_scenario_is_answered_with_those_that_exist() -> None:
    with pytest.raises(BadInput, match="balanced_loss, basis_fit, seq2seq"):
        scenario("nothing")


# Data: knobs, presets, remedies.


@every_scenario
def test_names_are_unique(name: str) -> None:
    chosen = scenario(name)
    for things in (chosen.knobs, chosen.presets, chosen.remedies):
        names = [thing.name for thing in things]
        assert len(names) == len(set(names))


@every_scenario
def test_it_tells_its_story(name: str) -> None:
    chosen = scenario(name)
    assert chosen.story.endswith(".")
    assert chosen.question.endswith("?")
    assert chosen.source.help.endswith(".")


@every_scenario
def test_knobs_depend_only_on_values_that_others_can_have(name: str) -> None:
    chosen = scenario(name)
    for knob in chosen.knobs:
        for other, values in knob.shown_if.items():
            assert [chosen.knob(other).check(value) for value in values] == list(values)


@every_scenario
def test_checks_are_toggles_that_are_off_as_posted(name: str) -> None:
    chosen = scenario(name)
    config = chosen.config("as-posted")
    assert [config[check] for check in chosen.checks] == [False] * len(chosen.checks)


@every_preset
def test_a_preset_sets_knobs_of_its_scenario_to_valid_values(name: str, preset: str) -> None:
    chosen = scenario(name)
    knobs = chosen.preset(preset).knobs
    assert {k: chosen.knob(k).check(v) for k, v in knobs.items()} == knobs
    assert all(chosen.knob(k).matters(chosen.config(preset)) for k in knobs)


@every_scenario
def test_as_posted_is_the_defaults_and_mended_is_not(name: str) -> None:
    chosen = scenario(name)
    assert chosen.config("as-posted") == {knob.name: knob.default for knob in chosen.knobs}
    assert chosen.config("mended") != chosen.config("as-posted")


@every_remedy
def test_a_remedy_changes_knobs_that_then_matter(name: str, remedy: Any) -> None:
    chosen = scenario(name)
    config = chosen.config("as-posted", remedy.knobs)
    assert remedy.reason.endswith(".")
    assert config != chosen.config("as-posted")
    assert all(chosen.knob(k).matters(config) for k in remedy.knobs)


@every_scenario
def test_exactly_the_knobs_read_before_the_first_step_restart_a_run(name: str) -> None:
    chosen = scenario(name)
    config = chosen.config("as-posted")
    for knob in chosen.knobs:
        restarts = chosen.restarts(config, config | {knob.name: "something else"})
        assert restarts == ((knob.name,) if knob.stage in ("data", "graph") else ())


# The pure functions.


@every_preset
def test_parameters_and_data_follow_from_the_seed(
    name: str, preset: str, same_bits: Callable[[Any, Any], bool]
) -> None:
    chosen = scenario(name)

    def start(seed: int) -> tuple[Any, Any]:
        config = chosen.config(preset, {"seed": seed})
        dataset = chosen.load(config, None)
        parameters = chosen.initialise(config, dataset, np.random.default_rng(seed))
        return parameters, dataset.train

    assert same_bits(start(3), start(3))
    assert not same_bits(start(3)[0], start(4)[0])


@every_preset
def test_parameters_are_named_float64_arrays(name: str, preset: str) -> None:
    chosen = scenario(name)
    config = chosen.config(preset)
    dataset = chosen.load(config, None)
    parameters = chosen.initialise(config, dataset, np.random.default_rng(0))
    assert all(array.dtype == np.float64 for array in parameters.values())
    assert all(np.isfinite(array).all() for array in parameters.values())
    assert {len(array) for array in dataset.train.values()} == {dataset.rows}


@every_preset
def test_a_step_is_a_function_of_its_inputs_alone(
    name: str, preset: str, make_trainer: Any, same_bits: Callable[[Any, Any], bool]
) -> None:
    trainer = make_trainer(name, preset)
    program, state, data = trainer.program, trainer.state, trainer.program.tensors
    train = data(trainer.dataset.train)
    before = [p.numpy().copy() for p in state.parameters]
    first = program.burst(state, trainer.config, train, 3, stop_at_bad=True)
    second = program.burst(state, trainer.config, train, 3, stop_at_bad=True)
    assert same_bits(first, second)
    assert same_bits(before, list(state.parameters))


@every_preset
@pytest.mark.parametrize("bursts", [(1,) * 12, (5, 7)])
def test_burst_lengths_change_nothing(
    name: str,
    preset: str,
    bursts: tuple[int, ...],
    make_trainer: Any,
    same_bits: Callable[[Any, Any], bool],
) -> None:
    one, many = make_trainer(name, preset), make_trainer(name, preset)
    rows = one.advance(12)
    parts = [many.advance(n) for n in bursts if not many.halted]
    # All but the update ratio, which is measured at the last step of a burst.
    assert same_bits(tuple(rows)[:-1], tuple(Rows.concatenate(parts))[:-1])
    assert same_bits(tuple(one.state), tuple(many.state))


@every_scenario
def test_as_posted_it_breaks_and_the_bad_step_can_be_replayed(
    name: str, make_trainer: Any, train: Any, same_bits: Callable[[Any, Any], bool]
) -> None:
    trainer = make_trainer(name)
    train(trainer, STEPS_TO_A_BAD_ONE)
    assert trainer.halted
    (snapshot,) = trainer.snapshots
    assert snapshot.step == trainer.first_bad_step
    data = trainer.program.tensors(trainer.dataset.train)
    _, rows = trainer.program.burst(snapshot.state, snapshot.config, data, 1, stop_at_bad=True)
    assert same_bits(tuple(rows), tuple(snapshot.rows))
    gradients = trainer.gradients(snapshot)
    bad = [np.sum(~np.isfinite(g)) for g in gradients.raw.values()]
    assert nonfinite(snapshot.rows.raw)[0].tolist() == bad
    assert sum(bad) > 0


@every_scenario
def test_mended_it_stays_finite_and_learns_from_the_start(
    name: str, make_trainer: Any, train: Any
) -> None:
    trainer = make_trainer(name, "mended")
    rows = train(trainer, 60)
    assert trainer.first_bad_step is None
    assert np.isfinite(rows.loss).all()
    assert rows.loss[-5:].mean() < rows.loss[:5].mean()


@every_preset
def test_the_outcome_can_be_shown_at_any_step(name: str, preset: str, make_trainer: Any) -> None:
    trainer = make_trainer(name, preset)
    outcome = trainer.outcome()
    assert all(np.isscalar(value) for value in outcome.metrics.values())
    for panel in outcome.panels:
        match panel:
            case Curves():
                assert panel.target in panel.lines
                assert {len(line) for line in panel.lines.values()} == {len(panel.x)}
            case Matrix():
                assert panel.values.shape == (len(panel.rows), len(panel.columns))
            case Listing():
                assert {len(row) for row in panel.rows} == {len(panel.columns)}
                assert len(panel.good) == len(panel.rows)


@every_scenario
def test_numbers_and_intervals_read_at_every_step_build_nothing(
    name: str, make_trainer: Any
) -> None:
    trainer = make_trainer(name, "mended")
    trainer.advance(1)
    traced = trainer.program._burst.experimental_get_tracing_count()
    for knob in trainer.scenario.knobs:
        if knob.stage == "step" and hasattr(knob, "high") and not isinstance(knob.default, tuple):
            trainer.change({knob.name: knob.high})
    trainer.advance(1)
    assert trainer.program._burst.experimental_get_tracing_count() == traced


@every_scenario
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_it_runs_in_every_dtype(name: str, dtype: str, make_trainer: Any) -> None:
    trainer = make_trainer(name, "mended", dtype=dtype)
    rows = trainer.advance(2)
    assert np.isfinite(rows.loss[0]) or rows.status[0] != 0
    assert trainer.gradients().raw.popitem()[1].dtype.name == dtype


def test_adding_a_scenario_is_one_file() -> None:
    """Each is found under the name of its own module, and nothing lists them."""
    assert [s.load.__module__.rpartition(".")[2] for s in scenarios().values()] == NAMES
    assert all(isinstance(s, Scenario) for s in scenarios().values())
