"""The command line: everything a browser can do, for scripts.

Every module in this folder that defines `COMMAND` is a command; nothing else registers it.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from ..errors import BadInput
from .command import BAD_USAGE, INTERRUPTED, PIPE_CLOSED, Command


class _Parser(argparse.ArgumentParser):
    """Bad usage is one line: argparse's own sentence without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"{self.prog}: {message}\n")


def commands() -> dict[str, Command]:
    modules = (import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__))
    found = (getattr(module, "COMMAND", None) for module in modules)
    return {command.name: command for command in found if command is not None}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 when it ran, 2 for bad usage, 130 after Ctrl-C."""
    program = f"python -m {(__package__ or '').partition('.')[0]}"
    try:
        found = commands()
        arguments = _parser(program, found).parse_args(argv)
        program += f" {arguments.command}"
        return found[arguments.command].execute(arguments)
    except BadInput as error:
        print(f"{program}: {error.sentence}", file=sys.stderr)
        return BAD_USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `… | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED


def _parser(program: str, found: Mapping[str, Command]) -> argparse.ArgumentParser:
    parser = _Parser(prog=program, description="Finds, explains and mends non-finite gradients.")
    choices = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in found.values():
        added = choices.add_parser(command.name, help=command.help, description=command.help)
        command.configure(added)
    return parser
