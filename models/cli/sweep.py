"""`sweep`: the map of a scenario over one to three knobs."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from ..scenarios.knobs import Number, format_number
from ..sweeps.axes import FINEST, MOST_AXES, read_axis
from ..sweeps.engines import engine
from ..sweeps.plan import MOST_SEEDS, Sweep
from ..sweeps.running import SweepRun, SweepView
from .command import INTERRUPTED, Command
from .quiet import load_tensorflow
from .run import STEPS
from .setup import add_setup_arguments, read_setup

FAILED = 1
SECONDS_BETWEEN_LOOKS = 0.2
SEEDS = Number(
    name="--seeds",
    label="Seeds",
    group="",
    default=1,
    low=1,
    high=MOST_SEEDS,
    integer=True,
    help="How many seeds, from --seed upwards.",
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_setup_arguments(parser)
    parser.add_argument(
        "--grid",
        action="append",
        required=True,
        metavar="KNOB=LOW:HIGH[:log|linear][:N]",
        help=f"an axis of the map, of at most {FINEST} values; or KNOB=VALUE,VALUE; may be given "
        f"up to {MOST_AXES} times",
    )
    add_length_arguments(parser)
    parser.add_argument(
        "--engine", default="local", help="local (default) or dask://HOST:PORT of a scheduler"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="JSON lines, written as results come; an unfinished sweep goes on where it was",
    )


def add_length_arguments(parser: argparse.ArgumentParser) -> None:
    for knob in (STEPS, SEEDS):
        parser.add_argument(
            knob.name, default=knob.format(knob.default), metavar="N", help=f"{knob.help} "
            "Default %(default)s."
        )  # fmt: skip


def execute(arguments: argparse.Namespace) -> int:
    steps, seeds = int(STEPS.parse(arguments.steps)), int(SEEDS.parse(arguments.seeds))
    setup = read_setup(arguments)
    axes = tuple(read_axis(setup.scenario, text) for text in arguments.grid)
    sweep = Sweep(setup.scenario.name, setup.config, axes, steps, seeds, setup.content)
    load_tensorflow()
    run = SweepRun(sweep, engine(arguments.engine), arguments.out)
    view = _follow(run)
    print(_as_text(sweep, view))
    if view.message:
        print(view.message, file=sys.stderr)
    if view.status == "stopped":
        return INTERRUPTED
    return FAILED if view.status == "failed" or view.failed else 0


def _follow(run: SweepRun) -> SweepView:
    """Until it has ended; Ctrl-C stops it and keeps what there is."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    try:
        with Progress(
            *columns,
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        ) as progress:
            bar = progress.add_task("", total=1.0, left="")
            run.start()
            while not run.wait(SECONDS_BETWEEN_LOOKS):
                view = run.view()
                left = "" if view.seconds_left is None else f"{view.seconds_left:.0f} s left"
                told = f"{len(view.results)} of {view.runs} runs"
                progress.update(bar, completed=view.done, description=told, left=left)
    except KeyboardInterrupt:
        run.stop()
        run.wait()
    finally:
        run.close()
    return run.view()


def _as_text(sweep: Sweep, view: SweepView) -> str:
    axes = " × ".join(f"{axis.knob} ({len(axis.values)})" for axis in sweep.axes)
    results = [result for result in view.results.values() if not result.failed]
    finite = [result for result in results if result.finite]
    lines = [
        f"{sweep.scenario}: {axes}, {sweep.steps} steps, {sweep.seeds} seed(s)",
        f"{len(results)} of {view.runs} runs computed in {view.seconds:.1f} s: {len(finite)} "
        f"finite, {len(results) - len(finite)} broken, {view.failed} failed",
    ]
    mechanisms = Counter(result.mechanism for result in results if not result.finite)
    lines += [f"  {count} {mechanism}" for mechanism, count in mechanisms.most_common()]
    if finite:
        best = max(finite, key=lambda result: result.metric)
        settings = sweep.settings(best.task.index)
        told = ", ".join(
            f"{name} {format_number(v) if isinstance(v, float) else v}"
            for name, v in settings.items()
        )
        lines.append(f"Best metric {best.metric:.4g} at {told}, seed {best.task.seed}")
    reasons = Counter(result.failed for result in view.results.values() if result.failed)
    lines += [f"Failed, {count} runs: {why}" for why, count in reasons.items()]
    return "\n".join(lines)


COMMAND = Command(
    name="sweep",
    help="Map where training stays finite over one to three knobs.",
    configure=configure,
    execute=execute,
)
