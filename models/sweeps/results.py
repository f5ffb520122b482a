"""What became of one run of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .plan import Task


@dataclass(frozen=True)
class RunResult:
    """One setting, one seed.

    first_bad_step: None where every step was finite.
    loss: of the last step, which for a broken run is the bad one (may be NaN or infinite).
    metric: the scenario's first metric, of the parameters after the last good step.
    broke_first: parameters whose gradient was not finite at the first bad step; none where only the
        loss was not finite.
    mechanism: why, see `models.diagnosis`; "" where nothing broke. `replayed` tells whether this
        very step was replayed to find out, or another one of the same part in which the same
        gradients broke in the same structure.
    failed: why the run could not be computed; then nothing else holds.
    """

    task: Task
    first_bad_step: int | None = None
    loss: float = float("nan")
    metric: float = float("nan")
    broke_first: tuple[str, ...] = ()
    mechanism: str = ""
    replayed: bool = False
    failed: str = ""

    @property
    def finite(self) -> bool:
        return self.first_bad_step is None and not self.failed

    def as_dict(self) -> dict[str, Any]:
        return {
            "index": list(self.task.index),
            "seed": self.task.seed,
            "first_bad_step": self.first_bad_step,
            "mechanism": self.mechanism,
            "replayed": self.replayed,
            "parameters": list(self.broke_first),
            "loss": self.loss,
            "metric": self.metric,
            "failed": self.failed,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> RunResult:
        """The inverse of `as_dict`, also after a way through JSON with numbers as text."""
        return RunResult(
            task=Task(tuple(data["index"]), data["seed"]),
            first_bad_step=data["first_bad_step"],
            loss=float(data["loss"]),
            metric=float(data["metric"]),
            broke_first=tuple(data["parameters"]),
            mechanism=data["mechanism"],
            replayed=data["replayed"],
            failed=data["failed"],
        )
