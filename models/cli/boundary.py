"""`boundary`: the smallest or largest value of a knob that stays finite."""

from __future__ import annotations

import argparse
import math

from rich.console import Console
from rich.progress import Progress

from ..errors import BadInput
from ..sweeps.boundary import find_boundary, in_words
from .command import Command
from .output import STDOUT, add_json_argument, check_writable, write_json
from .quiet import load_tensorflow
from .run import STEPS
from .setup import add_setup_arguments, read_setup
from .sweep import SEEDS, add_length_arguments


def configure(parser: argparse.ArgumentParser) -> None:
    add_setup_arguments(parser)
    parser.add_argument("--knob", required=True, help="the number-valued knob to search along")
    for end in ("low", "high"):
        parser.add_argument(
            f"--{end}", metavar="X", help=f"{end} end of the search, by default the knob's own; "
            "may lie beyond it"
        )  # fmt: skip
    add_length_arguments(parser)
    add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    steps, seeds = int(STEPS.parse(arguments.steps)), int(SEEDS.parse(arguments.seeds))
    low, high = _end("--low", arguments.low), _end("--high", arguments.high)
    check_writable(arguments.json)
    setup = read_setup(arguments)
    load_tensorflow()
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task("rounds", total=None)
        found = find_boundary(
            setup.scenario.name,
            setup.config,
            arguments.knob,
            low=low,
            high=high,
            steps=steps,
            seeds=seeds,
            content=setup.content,
            after_round=lambda done, rounds: progress.update(bar, completed=done, total=rounds),
        )
    if arguments.json is not None:
        write_json(arguments.json, found.as_dict())
    if arguments.json != STDOUT:
        print(in_words(found, setup.config))
    return 0


def _end(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadInput(f"{name}: “{text}” is not a number; give one such as 1e-9.", field=name)
    return value


COMMAND = Command(
    name="boundary",
    help="Find the smallest or largest value of a knob that stays finite.",
    configure=configure,
    execute=execute,
)
