"""`diagnose`: why the loss of a function in a person's own file is not finite."""

from __future__ import annotations

import argparse

from ..diagnosis.user_function import diagnose_file
from .command import Command
from .output import STDOUT, add_json_argument, check_writable, write_json
from .quiet import load_tensorflow


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "function", metavar="FILE.py:function", help="takes no arguments and returns the loss"
    )
    add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    check_writable(arguments.json)
    load_tensorflow()
    diagnosis = diagnose_file(arguments.function)
    if arguments.json is not None:
        write_json(arguments.json, diagnosis.to_dict())
    if arguments.json != STDOUT:
        print(diagnosis)
    return 0


COMMAND = Command(
    "diagnose", "Replay a loss function and explain what is not finite.", configure, execute
)
