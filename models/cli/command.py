"""What a command is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

# Exit codes beside 0, as shells expect them.
BAD_USAGE, INTERRUPTED, PIPE_CLOSED = 2, 130, 141


@dataclass(frozen=True)
class Command:
    """`configure` adds arguments to the command's parser; `execute` returns the exit code and may
    raise BadInput, whose sentence is then all that is printed."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], int]
