"""`run`: its JSON, its words, its exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.cli import main

ROOT = Path(__file__).parents[3]
KEYS = [
    "scenario",
    "preset",
    "config",
    "seed",
    "steps",
    "first_bad_step",
    "loss",
    "parameters",
    "health",
    "steps_per_second",
]
HEALTH = ["size", "nan", "posinf", "neginf", "zero", "subnormal", "max_abs", "norm"]


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """`run("seq2seq", …)` is the JSON of a run that went well, read strictly."""

    def run(*arguments: str) -> dict[str, Any]:
        assert main(["run", *arguments, "--json", "-"]) == 0
        return json.loads(capsys.readouterr().out, parse_constant=refuse_constant)

    return run


def test_a_broken_run_is_told_in_full(run: Any) -> None:
    result = run("seq2seq", "--steps", "5")
    assert list(result) == [*KEYS, "diagnosis"]
    assert result["scenario"] == "seq2seq"
    assert result["preset"] == "as-posted"
    assert result["seed"] == result["config"]["seed"] == 0
    assert result["first_bad_step"] == 0
    assert result["steps"] == len(result["loss"]) == 1
    assert list(result["health"]) == result["parameters"]
    for name, health in result["health"].items():
        assert list(health) == [*HEALTH, "applied"]
        assert list(health["applied"]) == HEALTH
        assert health["nan"] == (health["size"] if name.startswith("encoder") else 0)


def test_a_healthy_run_has_no_bad_step(run: Any) -> None:
    result = run("balanced_loss", "--preset", "mended", "--steps", "300", "--seed", "3")
    assert result["first_bad_step"] is None
    assert result["steps"] == len(result["loss"]) == 300
    assert result["seed"] == 3
    assert result["config"]["from_logits"] is True
    assert result["steps_per_second"] > 0


def test_the_losses_are_those_of_a_live_run_bit_for_bit(run: Any, make_trainer: Any) -> None:
    result = run("balanced_loss", "--steps", "500", "--set", "epsilon=1e-5")
    trainer = make_trainer("balanced_loss", epsilon=1e-5)
    losses = np.concatenate([trainer.advance(n).loss for n in (1, 99, 400)])
    assert np.array(result["loss"]).tobytes() == losses.tobytes()
    assert run("balanced_loss", "--steps", "500", "--set", "epsilon=1e-5")["loss"] == result["loss"]


def test_clipping_shows_in_applied_only(run: Any) -> None:
    settings = ("--set", "clipping=value", "--set", "clip_threshold=1e-3")
    health = run("balanced_loss", "--steps", "1", *settings)["health"]["W1"]
    assert health["max_abs"] > 1e-3
    assert health["applied"]["max_abs"] == pytest.approx(1e-3)


def test_carrying_on_reports_the_first_bad_step_and_non_finite_losses(run: Any) -> None:
    arguments = ("--set", "learning_rate=0.5", "--steps", "100", "--on-bad", "continue")
    result = run("balanced_loss", *arguments)
    bad = result["first_bad_step"]
    assert result["steps"] == 100
    assert result["loss"][bad + 1 :] == ["NaN"] * (99 - bad)
    assert isinstance(result["loss"][bad], float)
    assert result["health"]["b3"]["nan"] == 1


def test_skipping_goes_on_from_the_same_weights(run: Any) -> None:
    arguments = ("--set", "learning_rate=0.5", "--steps", "60", "--on-bad", "skip")
    result = run("balanced_loss", *arguments)
    assert len(set(result["loss"][result["first_bad_step"] :])) == 1


def test_json_goes_to_a_file_and_words_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "run.json"
    assert main(["run", "basis_fit", "--steps", "3", "--json", str(target)]) == 0
    assert json.loads(target.read_text(encoding="utf-8"))["first_bad_step"] == 0
    out, err = capsys.readouterr()
    assert "first bad step 0" in out
    assert "attention.Wq" in out
    assert err == ""


def test_a_check_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "basis_fit", "--steps", "3", "--set", "check_numerics=on"]) == 0
    assert "check_numerics after inner power : Tensor had Inf values" in capsys.readouterr().out


def test_data_of_ones_own(tmp_path: Path, run: Any) -> None:
    data = tmp_path / "points.csv"
    data.write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(1, 12)), encoding="utf-8")
    result = run("basis_fit", "--steps", "2", "--data", str(data))
    assert result["first_bad_step"] is None


def test_a_knob_without_effect_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "basis_fit", "--steps", "1", "--set", "epsilon=1e-3"]) == 0
    note = capsys.readouterr().err
    assert note.startswith("Note: epsilon has no effect here; it matters only when power is")
    assert note.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "COMMAND"),
        (["nothing"], "invalid choice: 'nothing'"),
        (["run"], "SCENARIO"),
        (["run", "nothing"], "There is no scenario “nothing”; there are balanced_loss,"),
        (["run", "seq2seq", "--preset", "x"], "it has as-posted and mended."),
        (["run", "seq2seq", "--set", "colour=1"], "has no knob “colour”"),
        (["run", "seq2seq", "--set", "hidden"], "give --set knob=value."),
        (["run", "seq2seq", "--set", "hidden=1e9"], "from 4 to 256 units."),
        (["run", "seq2seq", "--set", "hidden=many"], "“many” is not a number"),
        (["run", "seq2seq", "--seed", "-1"], "from 0 to 9999."),
        (["run", "seq2seq", "--steps", "0"], "from 1 to 10000000."),
        (["run", "seq2seq", "--steps", "ten"], "“ten” is not a number"),
        (["run", "seq2seq", "--on-bad", "cry"], "give halt, skip or continue."),
        (["run", "seq2seq", "--data", "/no/such/file"], "/no/such/file cannot be read"),
        (["run", "seq2seq", "--data", "/"], "/ cannot be read"),
        (["run", "seq2seq", "--json", "/no/such/file"], "/no/such/file cannot be written"),
        (["run", "seq2seq", "--colour"], "unrecognized arguments: --colour"),
        (["run", "basis_fit", "--set", "formula=1/0"], "The formula"),
        (["run", "basis_fit", "--set", "formula=__import__('os')"], "The formula"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(
    arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: Any = main(arguments)
    except SystemExit as end:  # argparse's way
        code = end.code
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert part in err
    assert err.count("\n") == 1


def test_a_file_of_another_kind_is_bad_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "pairs.txt"
    data.write_text("no tab in here\n" * 20, encoding="utf-8")
    assert main(["run", "seq2seq", "--data", str(data)]) == 2
    assert "no tab" in capsys.readouterr().err


# The same in a process of its own.


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    # A shell's background job ignores Ctrl-C, and so would its children.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "models", "run", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
    finally:
        signal.signal(signal.SIGINT, ignored)


def test_only_json_on_stdout_and_nothing_on_stderr() -> None:
    process = start("balanced_loss", "--steps", "400", "--json", "-", stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert err == ""
    assert json.loads(out)["first_bad_step"] > 20


def test_a_terminal_sees_a_progress_bar_and_ctrl_c_prints_what_there_was() -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = start("balanced_loss", "--preset", "mended", "--steps", "9999999", stderr=theirs)
    os.close(theirs)
    seen = b""
    while not re.search(rb"\d{3,}/9999999", seen):
        seen += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    while b"Interrupted" not in seen:
        seen += os.read(ours, 4096)
    out, _ = process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 130
    assert b"Traceback" not in seen
    assert b"of 9999999 steps." in seen
    assert "every gradient finite" in out


def test_ctrl_c_before_the_first_step_is_quiet() -> None:
    process = start("balanced_loss", "--steps", "9999999", stderr=subprocess.PIPE)
    libraries = Path(f"/proc/{process.pid}/maps")
    while "tensorflow" not in libraries.read_text():  # the command is at work, no step is taken
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
