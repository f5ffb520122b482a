"""`sweep` and `boundary` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from models.cli import main
from models.cli.command import BAD_USAGE

GRID = ["--grid", "epsilon=1e-12:1e-2:log:3", "--grid", "form=where,product"]


def test_a_sweep_and_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "map.jsonl"
    command = ["sweep", "balanced_loss", *GRID, "--set", "learning_rate=1", "--steps", "20",
               "--seeds", "2", "--out", str(out)]  # fmt: skip
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "12 of 12 runs computed" in told
    assert "log-of-zero" in told
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 1 + 12
    assert {line["settings"]["form"] for line in lines[1:]} == {"where", "product"}
    assert {line["seed"] for line in lines[1:]} == {0, 1}
    before = out.read_bytes()
    assert main(command) == 0  # all is there already
    assert out.read_bytes() == before
    assert main([*command, "--steps", "21"]) == BAD_USAGE
    assert "other settings" in capsys.readouterr().err


def test_a_boundary_as_json_and_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["boundary", "balanced_loss", "--knob", "epsilon", "--set", "learning_rate=1",
               "--steps", "30", "--seeds", "2"]  # fmt: skip
    assert main([*command, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {
        "knob", "boundary", "finite_side", "bracket", "steps", "seeds", "mechanism",
    }  # fmt: skip
    assert found["finite_side"] == "above"
    assert found["bracket"][0] <= 2**-25 <= found["bracket"][1] == found["boundary"]
    assert (found["knob"], found["steps"], found["seeds"]) == ("epsilon", 30, 2)
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("epsilon ≥ 2.98")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["sweep", "balanced_loss"], "--grid"),
        (["sweep", "balanced_loss", "--grid", "epsilon"], "is no axis"),
        (["sweep", "balanced_loss", *GRID, "--seeds", "9"], "from 1 to 8"),
        (["sweep", "balanced_loss", *GRID, "--engine", "spark"], "local or dask"),
        (["boundary", "balanced_loss"], "--knob"),
        (["boundary", "balanced_loss", "--knob", "form"], "no boundary"),
        (["boundary", "balanced_loss", "--knob", "epsilon", "--low", "x"], "not a number"),
    ],
)
def test_bad_usage_is_one_sentence(
    command: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(command)
    except SystemExit as stop:  # argparse's own way
        code = stop.code
    told = capsys.readouterr().err.strip()
    assert code == BAD_USAGE
    assert says in told
    assert "\n" not in told
