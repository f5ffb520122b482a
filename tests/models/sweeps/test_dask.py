"""A real Dask scheduler and real worker processes over TCP, and what happens when they die."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from models.errors import BadInput
from models.sweeps import engines
from models.sweeps.engines import engine
from models.sweeps.plan import Sweep
from models.sweeps.running import SweepRun

pytest.importorskip("distributed")

MakeSweep = Callable[..., Sweep]
ROOT = Path(__file__).parents[3]
AXES = ("epsilon=1e-12:1e-2:log:8", "learning_rate=1e-2:1:log:8")


class Cluster:
    """Processes on free ports of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(port))
        self.workers: list[subprocess.Popen[bytes]] = []

    def add_worker(self) -> subprocess.Popen[bytes]:
        worker = self._start(
            "dask_worker", f"tcp://{self.address}", "--no-nanny", "--nthreads", "1",
            "--host", "127.0.0.1", "--local-directory", str(self.folder),
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        with (self.folder / f"{program}.log").open("ab") as log:
            return subprocess.Popen(
                [*command, "--no-dashboard"], cwd=self.folder, env=environment, stdout=log,
                stderr=log,
            )  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


def connect(cluster: Cluster, workers: int) -> Any:
    dask = engine(f"dask://{cluster.address}")
    dask._client.wait_for_workers(workers, timeout=60)  # type: ignore[attr-defined]
    return dask


def wait_for(condition: Callable[[], Any], run: SweepRun) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert not run.wait(0.05), run.view()
        assert time.monotonic() < deadline


def test_a_killed_worker_costs_time_and_no_result(make_sweep: MakeSweep, cluster: Cluster) -> None:
    first, second = cluster.add_worker(), cluster.add_worker()
    sweep = make_sweep("balanced_loss", *AXES, seeds=4, steps=500)
    run = SweepRun(sweep, connect(cluster, 2))
    run.start()
    wait_for(lambda: run.view().results, run)
    first.send_signal(signal.SIGKILL)
    assert run.wait(180)
    view = run.view()
    run.close()
    assert second.poll() is None
    assert (view.status, view.message) == ("done", "")
    assert set(view.results) == set(sweep.tasks())
    assert view.failed == 0
    local = SweepRun(sweep)
    local.start()
    assert local.wait(180)
    local.close()
    for task, result in local.view().results.items():
        assert view.results[task].first_bad_step == result.first_bad_step


def test_a_scheduler_that_is_gone_is_named(
    make_sweep: MakeSweep, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add_worker()
    sweep = make_sweep("balanced_loss", *AXES, seeds=4, steps=800)
    path = tmp_path / "sweep.jsonl"
    run = SweepRun(sweep, connect(cluster, 1), path)
    run.start()
    wait_for(lambda: run.view().results, run)
    before = run.view().results
    cluster.scheduler.send_signal(signal.SIGKILL)
    assert run.wait(60)
    view = run.view()
    run.close()
    assert view.status == "failed"
    assert "scheduler" in view.message
    assert cluster.address in view.message
    assert set(view.results) == set(sweep.tasks())
    assert before.items() <= view.results.items()
    assert {result.failed for result in view.results.values()} <= {"", view.message}
    again = SweepRun(sweep, file=path)  # here, without the cluster
    assert before.items() <= again.view().results.items()
    assert len(again.view().results) < len(sweep.tasks())
    again.close()


def test_no_scheduler_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SECONDS_TO_CONNECT", 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match="No Dask scheduler answers"):
            engine(f"dask://127.0.0.1:{port}")


@pytest.mark.parametrize("text", ["dask", "dask://", "spark://host:1", ""])
def test_what_is_no_engine(text: str) -> None:
    with pytest.raises(BadInput, match="give local or dask"):
        engine(text)


def test_distributed_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BadInput, match="pip install distributed"):
        engine("dask://127.0.0.1:8786")
