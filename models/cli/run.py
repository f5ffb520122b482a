"""`run`: train a scenario without a browser and tell what became of its gradients."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..diagnosis import Diagnosis
from ..scenarios.knobs import Number
from ..training.health import as_dict
from ..training.program import Rows
from ..training.trainer import Trainer
from .command import INTERRUPTED, Command
from .output import STDOUT, add_json_argument, check_writable, write_json
from .quiet import load_tensorflow
from .setup import Setup, add_setup_arguments, read_setup

# Not a knob of any scenario, but read and refused like one.
STEPS = Number(
    name="--steps",
    label="Steps",
    group="",
    default=1000,
    low=1,
    high=10_000_000,
    integer=True,
    help="How many steps to take.",
)
SECONDS_IN_A_BURST = 0.1  # so that the bar moves and Ctrl-C is answered


def configure(parser: argparse.ArgumentParser) -> None:
    add_setup_arguments(parser)
    parser.add_argument(
        "--steps", default=STEPS.format(STEPS.default), metavar="N", help="default %(default)s"
    )
    add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    steps = int(STEPS.parse(arguments.steps))
    check_writable(arguments.json)
    setup = read_setup(arguments)
    load_tensorflow()
    run = Run(setup)
    exit_code = 0
    try:
        with _progress() as progress:
            bar = progress.add_task("", total=steps)
            run.advance(steps, lambda: progress.update(bar, completed=len(run.loss)))
    except KeyboardInterrupt:
        print(f"Interrupted after {len(run.loss)} of {steps} steps.", file=sys.stderr)
        exit_code = INTERRUPTED
    if arguments.json is not None:
        write_json(arguments.json, run.as_dict())
    if arguments.json != STDOUT:
        print(run.as_text())
    return exit_code


def _progress() -> Progress:
    """A bar on stderr; nothing at all where that is not a terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("step"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


class Run:
    """A trainer advanced in short bursts, with every step's loss.

    The bad step at which a run halts counts as one of its steps: it has a loss and a health, only
    its update was not made.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.trainer = Trainer(setup.scenario, setup.config, setup.dataset)
        self.loss: list[float] = []
        self._first_seconds = 0.0  # of the first step, which is mostly the compiler's
        self._seconds = 0.0  # of all later steps

    def advance(self, steps: int, after_burst: Callable[[], None] = lambda: None) -> None:
        """Take `steps` steps, or fewer if the run halts."""
        burst = 1
        while len(self.loss) < steps and not self.trainer.halted:
            began = time.perf_counter()
            rows = self.trainer.advance(min(burst, steps - len(self.loss)))
            seconds = time.perf_counter() - began
            if self.loss:
                self._seconds += seconds
                fitting = int(len(rows.step) * SECONDS_IN_A_BURST / seconds)
                burst = max(1, min(fitting, 2 * burst))
            else:
                self._first_seconds = seconds
            self.loss += rows.loss.tolist()
            after_burst()

    @property
    def steps_per_second(self) -> float:
        """Without the first step, unless it is the only one."""
        if len(self.loss) > 1:
            return (len(self.loss) - 1) / self._seconds
        return len(self.loss) / self._first_seconds if self.loss else 0.0

    def measured(self) -> Rows | None:
        """Rows of the first bad step, or else of the last one."""
        if self.trainer.first_bad_step is not None:
            return self.trainer.snapshots[0].rows
        return self.trainer.last_rows

    def as_dict(self) -> dict[str, Any]:
        """What `--json` writes; `health` holds each parameter's raw gradient and, as `applied`,
        the same after clipping."""
        return {
            "scenario": self.setup.scenario.name,
            "preset": self.setup.preset,
            "config": self.setup.config,
            "seed": self.setup.config["seed"],
            "steps": len(self.loss),
            "first_bad_step": self.trainer.first_bad_step,
            "loss": self.loss,
            "parameters": self.trainer.program.names,
            "health": self._health(),
            "steps_per_second": self.steps_per_second,
            "diagnosis": self.diagnosis.to_dict() if self.diagnosis else None,
        }

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Of the first bad step."""
        if self.trainer.first_bad_step is None:
            return None
        return self.trainer.diagnose(self.trainer.snapshots[0])

    def _health(self) -> dict[str, Any]:
        rows, program = self.measured(), self.trainer.program
        if rows is None:
            return {}
        sizes = [int(size) for size in program.sizes]
        raw, applied = (
            [as_dict(*cell) for cell in zip(health[-1], sizes, strict=True)]
            for health in (rows.raw, rows.applied)
        )
        return {
            name: before | {"applied": after}
            for name, before, after in zip(program.names, raw, applied, strict=True)
        }

    def as_text(self) -> str:
        rows = self.measured()
        if rows is None:
            return "No step was taken."
        bad = self.trainer.first_bad_step
        what = "every gradient finite" if bad is None else f"first bad step {bad}"
        metrics = self.trainer.outcome().metrics
        lines = [
            f"{self.setup.scenario.name}, {self.setup.preset}: {self.setup.dataset.description}",
            f"{len(self.loss)} steps, {what}, {self.steps_per_second:.0f} steps/s",
            f"loss {self.loss[0]:.6g} → {self.loss[-1]:.6g}; "
            + ", ".join(f"{name} {value:.4g}" for name, value in metrics.items()),
        ]
        if bad is not None and self.trainer.snapshots[0].message:
            lines.append(self.trainer.snapshots[0].message)
        if self.diagnosis is not None:
            lines.append(str(self.diagnosis))
        return "\n".join([*lines, f"Gradients at step {rows.step[-1]}:", *self._table()])

    def _table(self) -> list[str]:
        columns = ("size", "nan", "posinf", "neginf", "zero", "subnormal", "max_abs", "norm")
        table = [f"{'parameter':14}" + "".join(f"{name:>11}" for name in columns)]
        for name, health in self._health().items():
            table += [
                f"{label:14}" + "".join(f"{cells[column]:>11.4g}" for column in columns)
                for label, cells in ((name, health), ("  applied", health["applied"]))
            ]
        return table


COMMAND = Command(
    name="run",
    help="Train a scenario and report the health of its gradients.",
    configure=configure,
    execute=execute,
)
