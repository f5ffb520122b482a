"""What a sweep gains: `python tests/benchmarks/sweeps.py [NAME …]` (or `make bench`).

Times are this machine's; ratios within one run are what counts. Exit code 1 where a limit is
passed.
"""

from __future__ import annotations

import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from models.lazy import tf
from models.scenarios import scenario
from models.sweeps.axes import read_axis
from models.sweeps.engines import LocalEngine, engine, run_on_worker
from models.sweeps.members import Watch
from models.sweeps.part import run_part
from models.sweeps.plan import Part, Sweep, Task, levels, parts
from models.sweeps.running import SweepRun
from models.training.computing import set_up_tensorflow
from models.training.live import LiveRun
from models.training.program import draw_batch
from models.training.trainer import Trainer

ROOT = Path(__file__).parents[2]
SINGLES = 6  # single runs that are timed after some parts
EAGER_STEPS = 5
LARGE_SWEEP = "large_sweep"
SECONDS_OF_LIVE = 8


def sweep(name: str, *axes: str, preset: str = "as-posted", steps: int, **changes: Any) -> Sweep:
    chosen = scenario(name)
    read = tuple(read_axis(chosen, axis) for axis in axes)
    return Sweep(name, chosen.config(preset, changes), read, steps)


def balanced(resolution: int = 32, steps: int = 1000) -> Sweep:
    return sweep(
        "balanced_loss", f"epsilon=1e-12:1e-2:log:{resolution}",
        f"learning_rate=1e-3:1:log:{resolution}", steps=steps,
    )  # fmt: skip


def compiled_single(s: Sweep, task: Task) -> int:
    """One cell as a script would have it; the steps that it took."""
    chosen, config = scenario(s.scenario), s.run_config(task)
    trainer = Trainer(chosen, config, chosen.load(config, None))
    trainer.advance(s.steps)
    trainer.outcome()
    return trainer.step + trainer.halted


def eager_single(s: Sweep, task: Task) -> int:
    """The same as the posts write it: eager, and a Python check for each gradient."""
    chosen, config = scenario(s.scenario), s.run_config(task)
    trainer = Trainer(chosen, config, chosen.load(config, None))
    program, rate = trainer.program, config["learning_rate"]
    train = program.tensors(trainer.dataset.train)
    variables = {
        name: tf.Variable(p)
        for name, p in zip(program.names, trainer.state.parameters, strict=True)
    }
    knobs = program._loss_knobs(program.knob_tensors(config))
    for step in range(EAGER_STEPS):
        batch = draw_batch(train, tf.constant(step, tf.int64), config["batch_size"], knobs["seed"])
        with tf.GradientTape() as tape:
            loss = chosen.loss(variables, batch, knobs)
        gradients = tape.gradient(loss, list(variables.values()))
        for variable, gradient in zip(variables.values(), gradients, strict=True):
            if not bool(tf.reduce_all(tf.math.is_finite(gradient))):
                return step + 1
            variable.assign_sub(rate * gradient)
    return EAGER_STEPS


def throughput(s: Sweep, *, eager: bool = False) -> dict[str, float]:
    """Steps a second, compiling left out: the sweep, and loops over some of its cells. The three
    are run in turn, part by part, so that a busy machine is busy for all of them."""
    ways: dict[str, Callable[[Sweep, Task], int]] = {"compiled": compiled_single}
    if eager:
        ways["eager"] = eager_single
    cut = parts(s)
    run_part(cut[0])
    for way in ways.values():
        way(s, cut[0].tasks[0])
    steps, seconds = dict.fromkeys(("sweep", *ways), 0), dict.fromkeys(("sweep", *ways), 0.0)

    def timed(name: str, work: Callable[[], int]) -> None:
        began = time.perf_counter()
        steps[name] += work()
        seconds[name] += time.perf_counter() - began

    local = LocalEngine()

    def taken(some: list[Part]) -> int:
        futures = [local.submit(part, Watch()) for part in some]
        bad = [result.first_bad_step for future in futures for result in future.result()]
        return sum(s.steps if step is None else step + 1 for step in bad)

    generator = np.random.default_rng(0)
    for first in range(0, len(cut), 2 * local.parallel):
        some = cut[first : first + 2 * local.parallel]
        timed("sweep", lambda some=some: taken(some))
        tasks = [task for part in some for task in part.tasks]
        for i in generator.choice(len(tasks), min(SINGLES, len(tasks)), replace=False):
            for name, way in ways.items():
                timed(name, lambda way=way, task=tasks[i]: way(s, task))
    local.close()
    return {name: steps[name] / seconds[name] for name in steps}


def report(what: str, value: float, limit: float, *, most: bool = False) -> bool:
    good = value <= limit if most else value >= limit
    sign = "≤" if most else "≥"
    print(f"{what}: {value:.2f} ({sign} {limit}){'' if good else '  MISSED'}", flush=True)
    return good


def gains() -> list[bool]:
    rates = throughput(balanced(), eager=True)
    print({name: round(rate) for name, rate in rates.items()}, "steps/s")
    good = [
        report("balanced_loss 32×32 over the compiled loop", rates["sweep"] / rates["compiled"], 5),
        report("balanced_loss 32×32 over the eager loop", rates["sweep"] / rates["eager"], 60),
    ]
    others = (
        (3.0, sweep("basis_fit", "epsilon=1e-9:1e-2:log:16", "learning_rate=1e-4:1e-1:log:16",
                    preset="mended", steps=200)),
        (1.5, sweep("seq2seq", "clip_threshold=1e-1:1e2:log:8", "learning_rate=1e-3:1e-1:log:8",
                    preset="mended", steps=60, hidden=16, vocabulary=60, seq_len=8, batch_size=8)),
    )  # fmt: skip
    for least, s in others:
        rates = throughput(s)
        print({name: round(rate) for name, rate in rates.items()}, "steps/s")
        what = f"{s.scenario} over the compiled loop"
        good.append(report(what, rates["sweep"] / rates["compiled"], least))
    return good


def finish(run: SweepRun, until: Callable[[], bool] = lambda: False) -> float:
    """Seconds until `until` holds or the sweep has ended."""
    began = time.perf_counter()
    run.start()
    while not run.wait(0.01) and not until():
        pass
    return time.perf_counter() - began


def coarse() -> list[bool]:
    """Seconds to the first coarse map; the graph is warm."""
    s = balanced(steps=1000)
    run_part(parts(s)[0])
    run = SweepRun(s)
    first = {Task(index, 0) for index in next(iter(levels(s.shape)))}
    seconds = finish(run, lambda: first <= run.view().results.keys())
    run.stop()
    run.wait()
    run.close()
    return [report(f"first coarse map, {len(first)} cells × 1000 steps, s", seconds, 5, most=True)]


def memory() -> list[bool]:
    """GiB at the most of a process that makes a 64×64 sweep."""
    done = subprocess.run(
        [sys.executable, __file__, LARGE_SWEEP], stdout=subprocess.PIPE, text=True, check=True
    )
    gib = float(done.stdout.split()[-1])
    return [report("peak memory of a 64×64 sweep, GiB", gib, 2, most=True)]


def large_sweep() -> list[bool]:
    """What `memory` runs in a process of its own."""
    run = SweepRun(balanced(64, steps=50))
    finish(run)
    run.close()
    assert len(run.view().results) == 64 * 64
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
    return []


def live() -> list[bool]:
    """How late somebody who looks at a live run every 0.1 s gets his view, alone and beside a
    sweep."""
    s = balanced(steps=20_000)
    config = s.config | {"epsilon": 1e-4}
    chosen = scenario(s.scenario)
    watched = LiveRun(chosen, config, chosen.load(config, None))
    watched.wait_until_built()
    watched.start()
    run_part(parts(balanced(steps=1))[0])

    def look() -> tuple[float, float]:
        began, first, late = time.perf_counter(), watched.view().step, []
        while time.perf_counter() < began + SECONDS_OF_LIVE:
            asked = time.perf_counter()
            time.sleep(0.1)
            watched.view()
            late.append(time.perf_counter() - asked)
        return statistics.median(late), (watched.view().step - first) / SECONDS_OF_LIVE

    look()
    idle, alone = look()
    run = SweepRun(s)
    run.start()
    time.sleep(3)
    busy, beside = look()
    run.stop()
    run.wait()
    run.close()
    watched.close()
    print(f"the live run: {alone:.0f} steps/s alone, {beside:.0f} beside the sweep")
    return [report("refresh beside a sweep over the idle one", busy / idle, 2, most=True)]


def dask() -> list[bool]:
    """Two worker processes over one, each on a core of its own as if on a machine of its own."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("Dask: two workers need two cores; left out")
        return []
    rates = [_dask_rate(cores[:1]), _dask_rate(cores)]
    print(f"Dask: {rates[0]:.0f} steps/s by one worker, {rates[1]:.0f} by two")
    return [report("two Dask workers over one", rates[1] / rates[0], 1.6)]


def _dask_rate(cores: list[int]) -> float:
    s = balanced(steps=200)
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        probe.close()
        environment = os.environ | {"PYTHONPATH": str(ROOT)}

        def start(program: str, *arguments: str, core: int | None = None) -> Any:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{program}", *arguments, "--no-dashboard"],
                cwd=folder, env=environment, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            return process

        host, _, port = address.partition(":")
        processes = [start("dask_scheduler", "--host", host, "--port", port)]
        for core in cores:
            processes.append(
                start("dask_worker", f"tcp://{address}", "--no-nanny", "--nthreads", "1",
                      "--host", host, core=core)
            )  # fmt: skip
        cluster = engine(f"dask://{address}")
        client = cluster._client  # type: ignore[attr-defined]
        client.wait_for_workers(len(cores), timeout=60)
        client.run(run_on_worker, parts(balanced(steps=1))[0])  # compiles on every worker
        run = SweepRun(s, cluster)
        seconds = finish(run)
        assert not run.view().failed
        bad = [result.first_bad_step for result in run.view().results.values()]
        run.close()
        for process in reversed(processes):
            process.kill()
            process.wait()
    return sum(s.steps if step is None else step + 1 for step in bad) / seconds


BENCHMARKS = {b.__name__: b for b in (gains, coarse, memory, live, dask)}
PARTS_OF_THEM = {LARGE_SWEEP: large_sweep}


def main(names: list[str]) -> int:
    set_up_tensorflow()
    known = BENCHMARKS | PARTS_OF_THEM
    good = [g for name in names or BENCHMARKS for g in known[name]()]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
