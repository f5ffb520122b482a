"""`remedies`: try every remedy of a scenario and tell which of them mend it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..remedies.result import Result
from ..remedies.trials import Trials
from ..scenarios.knobs import Number
from .command import INTERRUPTED, Command
from .output import STDOUT, add_json_argument, check_writable, write_json
from .quiet import load_tensorflow
from .setup import Setup, add_setup_arguments, read_setup

# Not a knob of any scenario, but read and refused like one.
STEPS = Number(
    name="--steps",
    label="Steps",
    group="",
    default=200,
    low=1,
    high=10_000_000,
    integer=True,
    unit="steps",
    help="How many steps each remedy is given.",
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_setup_arguments(parser)
    parser.add_argument(
        "--steps",
        metavar="N",
        help="for each remedy; default twice the step that broke, at least 200",
    )
    add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    steps = None if arguments.steps is None else int(STEPS.parse(arguments.steps))
    check_writable(arguments.json)
    setup = read_setup(arguments)
    load_tensorflow()
    trials = Trials(setup.scenario, setup.config, setup.dataset, content=setup.content, steps=steps)
    exit_code = 0
    try:
        _watch(trials)
    except KeyboardInterrupt:
        trials.stop()
        trials.wait()
        done, total = trials.progress
        print(f"Interrupted after {done} of {total} remedies.", file=sys.stderr)
        exit_code = INTERRUPTED
    if trials.error:
        raise RuntimeError(trials.error)
    if arguments.json is not None:
        write_json(arguments.json, as_dict(setup, trials))
    if arguments.json != STDOUT:
        print(as_text(setup, trials))
    return exit_code


def _watch(trials: Trials) -> None:
    """Run them with a bar on stderr; nothing at all where that is not a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("remedy"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    now = TextColumn("{task.description}")
    with Progress(
        *columns, now, console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task("", total=None)
        trials.start()
        while not trials.wait(0.1):
            done, total = trials.progress
            bar.update(task, completed=done, total=total, description=", ".join(trials.now))


def as_dict(setup: Setup, trials: Trials) -> dict[str, Any]:
    """What `--json` writes; `baseline` is the row of the run as it stands."""
    untouched = trials.untouched
    return {
        "scenario": setup.scenario.name,
        "preset": setup.preset,
        "config": setup.config,
        "baseline": None if untouched is None else untouched.as_dict(),
        "remedies": [result.as_dict() for result in trials.results],
    }


def as_text(setup: Setup, trials: Trials) -> str:
    untouched = trials.untouched
    if untouched is None:
        return "Nothing was tried."
    rows = [untouched, *trials.results]
    width = max(len(row.title) for row in rows)
    metric = untouched.metric_name
    heading = f"{'remedy':{width}}  {'verdict':31}  {'first bad':>9}  {'loss':>9}  {metric}"
    return "\n".join(
        [
            f"{setup.scenario.name}, {setup.preset}: {setup.dataset.description}",
            f"{heading}  {'fidelity':>8}  {'cost':>5}",
            *(line for row in rows for line in _lines(row, width, len(metric))),
        ]
    )


def _lines(row: Result, width: int, metric_width: int) -> list[str]:
    first_bad = "finite" if row.first_bad_step is None else f"{row.first_bad_step:,}"
    distance, cost = row.fidelity.distance, row.cost
    return [
        f"{row.title:{width}}  {row.verdict:31}  {first_bad:>9}  {row.loss:>9.3g}  "
        f"{row.metric:>{metric_width}.3g}  "
        f"{'–' if distance is None else format(distance, '.1e'):>8}  "
        f"{'–' if cost is None else format(cost, '.2f'):>5}",
        f"    {row.reason}",
    ]


COMMAND = Command(
    name="remedies",
    help="Try every remedy of a scenario and tell which of them mend it.",
    configure=configure,
    execute=execute,
)
