"""`scenarios`: everything there is to turn, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.cli import main
from models.scenarios import scenario, scenarios


@pytest.fixture
def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["scenarios", "--json", "-"]) == 0
    return {s["name"]: s for s in json.loads(capsys.readouterr().out)["scenarios"]}


def test_every_scenario_with_all_it_has(listed: dict[str, Any]) -> None:
    assert list(listed) == list(scenarios())
    for name, described in listed.items():
        chosen = scenario(name)
        for things in ("knobs", "presets", "remedies"):
            names = [thing["name"] for thing in described[things]]
            assert names == [thing.name for thing in getattr(chosen, things)]


def test_a_default_of_the_listing_is_accepted_by_its_knob(listed: dict[str, Any]) -> None:
    for name, described in listed.items():
        for entry in described["knobs"]:
            knob = scenario(name).knob(entry["name"])
            assert knob.check(entry["default"]) == knob.default
            assert entry["help"] == knob.help


def test_a_number_has_bounds_and_a_choice_options(listed: dict[str, Any]) -> None:
    knobs = {knob["name"]: knob for knob in listed["basis_fit"]["knobs"]}
    assert knobs["epsilon"] == {
        "name": "epsilon",
        "kind": "number",
        "group": "numerics",
        "label": "ε of the base",
        "help": "Smallest base that is raised to a power.",
        "default": 1e-6,
        "unit": "",
        "low": 1e-12,
        "high": 0.1,
        "scale": "log",
        "options": None,
        "stage": "step",
        "shown_if": {"power": ["safe_offset", "exp_log", "sign_preserving"]},
    }
    assert knobs["points"]["kind"] == "integer"
    assert knobs["points"]["unit"] == "points"
    assert knobs["exponent_bounds"]["kind"] == "interval"
    assert knobs["exponent_bounds"]["default"] == [0.1, 2.0]
    assert knobs["power"]["kind"] == "choice"
    assert next(iter(knobs["power"]["options"])) == "pow"
    assert knobs["layer_norm"]["kind"] == "toggle"
    assert knobs["formula"]["kind"] == "text"


def test_the_text_names_every_knob_preset_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios"]) == 0
    out = capsys.readouterr().out
    for chosen in scenarios().values():
        for thing in (*chosen.knobs, *chosen.presets, *chosen.remedies):
            assert f"    {thing.name} " in out


def test_json_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "scenarios.json"
    assert main(["scenarios", "--json", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(target.read_text(encoding="utf-8"))["scenarios"]
