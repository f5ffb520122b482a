"""What several commands are asked for alike: a scenario, its knobs and its data."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadInput
from ..scenarios import scenario
from ..scenarios.contract import Dataset, Scenario
from ..scenarios.knobs import Config, KnobValue


@dataclass(frozen=True)
class Setup:
    """A scenario with all its knobs and its data, ready for a `Trainer`; `content` is the file that
    the data came from."""

    scenario: Scenario
    preset: str
    config: Config
    dataset: Dataset
    content: bytes | None = None


def add_setup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help="which one; see `scenarios`")
    parser.add_argument("--preset", default="as-posted", help="as-posted (default) or mended")
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="KNOB=VALUE",
        help="set a knob on top of the preset; may be repeated",
    )
    parser.add_argument("--seed", metavar="S", help="short for --set seed=S")
    parser.add_argument(
        "--on-bad",
        metavar="halt|skip|continue",
        help="at a non-finite gradient; short for --set on_bad=…",
    )
    parser.add_argument("--data", type=Path, metavar="FILE", help="your own data")


def read_setup(arguments: argparse.Namespace) -> Setup:
    """The set-up that the arguments name (BadInput); knobs without effect are noted on stderr."""
    chosen = scenario(arguments.scenario)
    changes = _changes(chosen, arguments)
    config = chosen.config(arguments.preset, changes)
    for name in changes:
        if not chosen.knob(name).matters(config):
            print(f"Note: {_why_idle(chosen, name, config)}", file=sys.stderr)
    content = _content(arguments.data)
    dataset = chosen.load(config, content)
    return Setup(chosen, arguments.preset, config, dataset, content)


def _changes(chosen: Scenario, arguments: argparse.Namespace) -> dict[str, KnobValue]:
    """Later settings win over earlier ones, --seed and --on-bad over --set."""
    settings = list(arguments.changes)
    if arguments.seed is not None:
        settings.append(f"seed={arguments.seed}")
    if arguments.on_bad is not None:
        settings.append(f"on_bad={arguments.on_bad}")
    changes: dict[str, KnobValue] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise BadInput(f"“{setting}” sets nothing; give --set knob=value.", field=name)
        changes[name.strip()] = chosen.knob(name.strip()).parse(text.strip())
    return changes


def _why_idle(chosen: Scenario, name: str, config: Config) -> str:
    conditions = (
        f"{other} is {' or '.join(chosen.knob(other).format(value) for value in values)}"
        for other, values in chosen.knob(name).shown_if.items()
        if config[other] not in values
    )
    return f"{name} has no effect here; it matters only when {' and '.join(conditions)}."


def _content(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", field="data") from None
