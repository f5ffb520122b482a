"""Stop, resume, failures: nothing that was computed is lost, nothing is computed twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.errors import BadInput
from models.sweeps import engines
from models.sweeps.file import read_sweep
from models.sweeps.part import run_part
from models.sweeps.plan import Part, Sweep
from models.sweeps.running import SweepRun

MakeSweep = Callable[..., Sweep]
AXES = ("epsilon=1e-12:1e-2:log:12", "learning_rate=1e-2:1:log:12")


def same(a: Any, b: Any) -> bool:
    """Results are equal up to who was replayed, which depends on the parts."""
    return a.task == b.task and a.first_bad_step == b.first_bad_step and a.mechanism == b.mechanism


def finish(run: SweepRun) -> Any:
    run.start()
    assert run.wait(120)
    run.close()
    return run.view()


def test_a_sweep_gives_every_cell(make_sweep: MakeSweep, tmp_path: Path) -> None:
    sweep = make_sweep("balanced_loss", *AXES, steps=30)
    run = SweepRun(sweep, file=tmp_path / "sweep.jsonl")
    view = finish(run)
    assert (view.status, view.message, view.done) == ("done", "", 1.0)
    assert set(view.results) == set(sweep.tasks())
    cells = run.cells()
    assert [cell.index for cell in cells] == [(i, j) for i in range(12) for j in range(12)]
    assert all(len(cell.runs) == 1 for cell in cells)
    broken = {cell.index: cell.runs[0] for cell in cells if not cell.runs[0].finite}
    # 1 − ε is 1 in float32 for ε up to 2^-25, whatever the learning rate.
    assert broken
    assert all(cells_epsilon(sweep, index) <= 2**-25 for index in broken)
    assert {result.mechanism for result in broken.values()} == {"log-of-zero"}


def cells_epsilon(sweep: Sweep, index: tuple[int, ...]) -> float:
    return float(sweep.settings(index)["epsilon"])  # type: ignore[arg-type]


def test_stop_and_resume_in_another_process(make_sweep: MakeSweep, tmp_path: Path) -> None:
    sweep = make_sweep("balanced_loss", *AXES, steps=2000)
    path = tmp_path / "sweep.jsonl"
    run = SweepRun(sweep, file=path)
    run.start()
    while not run.view().results:  # those that break at once
        assert not run.wait(0.02)
    run.stop()
    assert run.wait(20)
    run.close()
    stopped = run.view()
    assert stopped.status == "stopped"
    assert 0 < len(stopped.results) < len(sweep.tasks())
    with path.open("a") as file:  # as a process leaves it that is killed while it writes
        file.write('{"settings": {"epsi')

    read, results = read_sweep(path)
    assert read == sweep
    assert results == stopped.results

    computed: list[Part] = []

    class Counting(engines.LocalEngine):
        def submit(self, part: Part, watch: Any) -> Any:
            computed.append(part)
            return super().submit(part, watch)

    short = SweepRun(sweep, Counting(), path)
    short.start()
    while len(short.view().results) <= len(stopped.results):
        assert not short.wait(0.02)
    short.stop()
    assert short.wait(20)
    short.close()
    assert not {task for part in computed for task in part.tasks} & set(stopped.results)
    assert stopped.results.items() <= read_sweep(path)[1].items()


def test_a_stopped_run_goes_on_by_itself(make_sweep: MakeSweep) -> None:
    sweep = make_sweep("balanced_loss", "learning_rate=1e-2:1:log:8", steps=1500)
    run = SweepRun(sweep)
    run.start()
    while not run.view().survived:
        assert not run.wait(0.02)
    run.stop()
    assert run.wait(20)
    assert run.view().status == "stopped"
    view = finish(run)
    assert view.status == "done"
    assert set(view.results) == set(sweep.tasks())


def test_a_part_that_raises_is_named_and_the_others_are_computed(
    make_sweep: MakeSweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sometimes(part: Part, watch: Any) -> Any:
        if part.configs[0]["form"] == "product":
            raise RuntimeError("no room\nleft on the device")
        return run_part(part, watch)

    sweep = make_sweep("balanced_loss", "form=where,product", "learning_rate=1e-2:1:4", steps=3)
    monkeypatch.setattr(engines, "run_part", sometimes)
    path = tmp_path / "sweep.jsonl"
    view = finish(SweepRun(sweep, file=path))
    failed = {task for task, result in view.results.items() if result.failed}
    assert set(view.results) == set(sweep.tasks())
    assert failed == {task for task in sweep.tasks() if task.index[0] == 1}
    assert {view.results[task].failed for task in failed} == {"RuntimeError: no room"}
    assert view.failed == 4
    assert view.message == "4 of 8 runs could not be computed."

    monkeypatch.undo()
    again = finish(SweepRun(sweep, file=path))  # what failed is tried again
    assert again.failed == 0
    assert len(again.results) == 8


def test_the_file_holds_what_was_asked_for(make_sweep: MakeSweep, tmp_path: Path) -> None:
    sweep = make_sweep("balanced_loss", "weight_std=1:2:2", seeds=2, steps=5, learning_rate=1.0)
    path = tmp_path / "sweep.jsonl"
    finish(SweepRun(sweep, file=path))

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    lines = [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]
    assert lines[0]["sweep"]["steps"] == 5
    assert len(lines) == 1 + 2 * 2
    for line in lines[1:]:
        assert line["settings"].keys() == {"weight_std"}
        assert line.keys() == {
            "settings", "index", "seed", "first_bad_step", "mechanism", "replayed", "parameters",
            "loss", "metric", "failed",
        }  # fmt: skip


def test_a_file_of_another_sweep_is_refused(make_sweep: MakeSweep, tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    SweepRun(make_sweep("balanced_loss", "epsilon=1e-9:1e-3:4"), file=path)
    with pytest.raises(BadInput, match="other settings"):
        SweepRun(make_sweep("balanced_loss", "epsilon=1e-9:1e-3:5"), file=path)
    path.write_text("a shopping list\n")
    with pytest.raises(BadInput, match="not a file of a sweep"):
        SweepRun(make_sweep("balanced_loss", "epsilon=1e-9:1e-3:4"), file=path)
    assert path.read_text() == "a shopping list\n"
    with pytest.raises(BadInput, match="cannot be written"):
        SweepRun(make_sweep("balanced_loss", "epsilon=1e-9:1e-3:4"), file=tmp_path)
