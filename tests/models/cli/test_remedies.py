"""`remedies`: its JSON, its table, its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.cli import main, remedies
from models.remedies.trials import Trials

ROW = {
    "name",
    "knobs",
    "first_bad_step",
    "final_loss",
    "metric",
    "fidelity",
    "cost",
    "verdict",
    "reason",
}
FAST = ("--set", "learning_rate=1", "--steps", "40")  # breaks before step 20


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[str]]:
    """What one run writes as JSON and what it prints."""
    target = tmp_path_factory.mktemp("remedies") / "table.json"
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", lambda text, **_: printed.append(text))
        assert main(["remedies", "balanced_loss", *FAST, "--json", str(target)]) == 0
    result = json.loads(target.read_text(), parse_constant=refuse_constant)
    return result, "\n".join(printed).splitlines()


def test_the_json_holds_every_row_in_full(told: Any) -> None:
    result, _ = told
    assert {"scenario", "config", "baseline", "remedies"} <= result.keys()
    assert result["scenario"] == "balanced_loss"
    assert result["config"]["learning_rate"] == 1
    for row in (result["baseline"], *result["remedies"]):
        assert row.keys() >= ROW
    names = [row["name"] for row in result["remedies"]]
    assert {"epsilon", "from_logits", "clip_norm", "product+epsilon"} <= set(names)


def test_it_tells_finite_from_broken(told: Any) -> None:
    result, _ = told
    rows = {row["name"]: row for row in result["remedies"]}
    broke = result["baseline"]["first_bad_step"]
    assert 0 < broke < 20
    assert rows["epsilon"]["first_bad_step"] is None
    assert rows["epsilon"]["verdict"] == "mends"
    assert rows["epsilon"]["steps"] == 40
    assert rows["epsilon"]["knobs"] == {"epsilon": 1e-7}
    assert rows["guarded_counts"]["first_bad_step"] == broke
    assert rows["guarded_counts"]["fidelity"] is None
    assert rows["product"]["final_loss"] == "NaN"


def test_the_best_come_first(told: Any) -> None:
    result, _ = told
    verdicts = [row["verdict"] for row in result["remedies"]]
    order = ["mends", "only delays", "does nothing", "makes it worse"]
    assert verdicts == sorted(verdicts, key=order.index)


def test_the_table_gives_each_row_and_its_reason(told: Any) -> None:
    result, printed = told
    assert printed[0].startswith("balanced_loss, as-posted: 426 training rows")
    assert printed[1].split()[-3:] == ["accuracy", "fidelity", "cost"]
    assert printed[2].startswith("As it stands")
    assert [line.strip() for line in printed[3::2]] == [
        row["reason"] for row in (result["baseline"], *result["remedies"])
    ]


def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["remedies", "basis_fit", "--steps", "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_after_ctrl_c_what_is_done_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt_after_the_first_remedy(trials: Trials) -> None:
        trials.start()
        came = iter(trials)
        next(came), next(came)
        raise KeyboardInterrupt

    monkeypatch.setattr(remedies, "_watch", interrupt_after_the_first_remedy)
    target = tmp_path / "table.json"
    assert main(["remedies", "balanced_loss", *FAST, "--json", str(target)]) == 130
    done = len(json.loads(target.read_text())["remedies"])
    assert 1 <= done < 12
    assert capsys.readouterr().err == f"Interrupted after {done} of 12 remedies.\n"
