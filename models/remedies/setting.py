"""What the trials of one run have in common, and how their work is cut into pieces."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from ..scenarios.contract import Dataset, Scenario
from ..scenarios.knobs import Config
from ..training.collector import settle
from .walk import Walk

# Work is written as generators that hand back control after each burst, so that whoever drives
# them can share the machine. They yield TRACES before a piece that may compile a graph (a second
# or more) and PLAIN before any other.
PLAIN, TRACES = False, True

T = TypeVar("T")
Work = Generator[bool, None, T]


@dataclass(frozen=True)
class Setting:
    """A run that is to be mended; `content` is the file that its data came from, if any."""

    scenario: Scenario
    config: Config
    dataset: Dataset
    content: bytes | None = None


def compiled(walk: Walk) -> Work[None]:
    """Compile the walk's step unless another run of the same structure has done so."""
    if not walk.compiled:
        yield TRACES
        walk.compile()
        settle()


def advanced(walk: Walk, until: int) -> Work[None]:
    """Walk on to step `until`."""
    for _ in walk.advance(until):
        yield PLAIN
