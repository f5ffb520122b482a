"""A map and its trials as tables, one row a run: columns for CSV, Parquet and data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..scenarios.knobs import KnobValue
from .optimise import Trial
from .plan import Sweep
from .results import RunResult
from .running import Cell

Columns = dict[str, list[Any]]


def cell_columns(sweep: Sweep, cells: Iterable[Cell]) -> Columns:
    """The axes' knobs, the seed, and what became of the run; cells without a run have no row."""
    rows = [_row(cell.settings, run) for cell in cells for run in cell.runs]
    return _columns([axis.knob for axis in sweep.axes], rows)


def trial_columns(knobs: Iterable[str], trials: Iterable[Trial]) -> Columns:
    """The trial's number comes first."""
    rows = [
        {"trial": trial.number} | _row(trial.settings, run)
        for trial in trials
        for run in trial.runs
    ]
    return _columns(["trial", *knobs], rows)


def _row(settings: Mapping[str, KnobValue], run: RunResult) -> dict[str, Any]:
    told = {name: str(v) if isinstance(v, tuple) else v for name, v in settings.items()}
    return told | {
        "seed": run.task.seed,
        "first_bad_step": run.first_bad_step,
        "mechanism": run.mechanism,
        "parameters": " ".join(run.broke_first),
        "loss": run.loss,
        "metric": run.metric,
        "failed": run.failed,
    }


def _columns(first: list[str], rows: list[dict[str, Any]]) -> Columns:
    names = [
        *first, "seed", "first_bad_step", "mechanism", "parameters", "loss", "metric", "failed",
    ]  # fmt: skip
    return {name: [row[name] for row in rows] for name in names}
