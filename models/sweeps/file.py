"""The file of a sweep: JSON lines, the sweep first and then a line for every run as it ends.

A line is whole or it does not count, so a sweep that was stopped or killed at any moment goes on
where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..strict import strict
from .axes import Axis
from .plan import Sweep, Task
from .results import RunResult

FORMAT = "nanatomy sweep 1"


class SweepFile:
    """A sweep's results on disk; opening it reads those that are there already."""

    def __init__(self, path: Path, sweep: Sweep) -> None:
        """BadInput where the file cannot be written or holds something else."""
        self.path, self.sweep = path, sweep
        try:
            with path.open("a", encoding="utf-8"):
                pass
            whole = _whole_lines(path)
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror}.", field="out") from None
        if whole:
            self.results = _read(path, whole, describe(sweep))
        else:
            self.results = {}
            self._append([{"format": FORMAT, "sweep": describe(sweep)}])

    def add(self, results: Iterable[RunResult]) -> None:
        self._append(
            {"settings": self.sweep.settings(result.task.index)} | result.as_dict()
            for result in results
        )

    def _append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        lines = [json.dumps(strict(row), allow_nan=False, ensure_ascii=False) for row in rows]
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)


def describe(sweep: Sweep) -> dict[str, Any]:
    """A sweep as JSON has it; the person's own data by their SHA-256."""
    content = sweep.content
    described = {
        "scenario": sweep.scenario,
        "config": sweep.config,
        "axes": [
            {"knob": axis.knob, "values": list(axis.values), "log": axis.log} for axis in sweep.axes
        ],
        "steps": sweep.steps,
        "seeds": sweep.seeds,
        "data": None if content is None else hashlib.sha256(content).hexdigest(),
    }
    return json.loads(json.dumps(strict(described)))


def read_sweep(path: Path, content: bytes | None = None) -> tuple[Sweep, dict[Task, RunResult]]:
    """A sweep and its results so far; `content` is the data it was made with, where it had any.

    Raises BadInput.
    """
    try:
        lines = _whole_lines(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", field="file") from None
    described = _header(path, lines)
    sweep = Sweep(
        scenario=described["scenario"],
        config=_tuples(described["config"]),
        axes=tuple(
            Axis(a["knob"], tuple(_tuple(v) for v in a["values"]), a["log"])
            for a in described["axes"]
        ),
        steps=described["steps"],
        seeds=described["seeds"],
        content=content,
    )
    return sweep, _read(path, lines, describe(sweep))


def _whole_lines(path: Path) -> list[str]:
    """The lines that were written to their end; what follows them is cut off."""
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return whole.decode("utf-8", errors="replace").splitlines()


def _header(path: Path, lines: list[str]) -> dict[str, Any]:
    try:
        header = json.loads(lines[0])
        if header["format"] == FORMAT:
            return header["sweep"]
    except (IndexError, ValueError, KeyError, TypeError):
        pass
    raise BadInput(f"{path} is not a file of a sweep; name another file.", field="out")


def _read(path: Path, lines: list[str], described: Mapping[str, Any]) -> dict[Task, RunResult]:
    """Results by task; those that failed are left out, so that they are tried again."""
    if _header(path, lines) != described:
        raise BadInput(
            f"{path} holds a sweep with other settings; name another file, or repeat its settings "
            "to go on with it.",
            field="out",
        )
    try:
        results = [RunResult.from_dict(json.loads(line)) for line in lines[1:]]
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{path} is damaged; name another file.", field="out") from None
    return {result.task: result for result in results if not result.failed}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _tuples(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _tuple(value) for name, value in config.items()}
