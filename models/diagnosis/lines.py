"""Whose line of code an operation stands on.

The user's own line is the innermost frame that belongs neither to TensorFlow, Keras, another
installed package or Python itself, nor to this folder.
"""

from __future__ import annotations

import linecache
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from . import _tensorflow

USER, LIBRARY, OWN, GRADIENT, CUSTOM, TAPE = range(6)

_HERE = str(Path(__file__).resolve().parent)
_ROOT = str(Path(__file__).resolve().parents[1])
_STANDARD = tuple({sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["platstdlib"]})


@dataclass(frozen=True)
class Source:
    """A line of the user's program: `file`, `line` (from 1), and its `text` without indentation."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}: {self.text}"


class Frames:
    """Tells frames apart; remembers each code object for as long as it lives itself."""

    def __init__(self) -> None:
        self.kinds: dict[CodeType, int] = {_tensorflow.gradient_code(): GRADIENT}
        custom = _tensorflow.custom_gradient_code()
        if custom is not None:
            self.kinds[custom] = CUSTOM
        self.kinds.update(dict.fromkeys(_tensorflow.tape_codes(), TAPE))

    def kind(self, code: CodeType) -> int:
        """Which of USER, LIBRARY, OWN, GRADIENT, CUSTOM, TAPE a frame of this code is."""
        kind = self.kinds.get(code)
        if kind is None:
            kind = self.kinds[code] = _kind_of_file(code.co_filename)
        return kind


def _kind_of_file(name: str) -> int:
    if name.startswith(("<frozen", "<__")) or "__autograph_generated_file" in name:
        return LIBRARY
    if name.startswith(_HERE):
        # The wrappers around calls stand between two frames of the program.
        return LIBRARY if name == _tensorflow.__file__ else OWN
    if name.startswith(_ROOT):
        return USER
    if "site-packages" in name or "dist-packages" in name or name.startswith(_STANDARD):
        return LIBRARY
    return USER


def caller() -> tuple[str, int] | None:
    """The user's line that this call comes from, as (file, line)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _kind_of_file(frame.f_code.co_filename) == USER:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def innermost(frames: Sequence[Any]) -> tuple[str, int] | None:
    """The user's innermost line of a recorded traceback, as (file, line)."""
    own = [f for f in frames if _kind_of_file(f.filename) == USER]
    return (own[-1].filename, own[-1].lineno) if own else None


def source(file: str | None, line: int) -> Source | None:
    """The line as the user wrote it (notebook cells included)."""
    return None if file is None else Source(file, line, linecache.getline(file, line).strip())
