"""What came out of a trial, and what it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..scenarios.knobs import KnobValue
from ..training.history import HistoryView
from .fidelity import Fidelity

# From the best to the worst.
Verdict = Literal[
    "untouched",
    "mends",
    "mends but distorts the gradient",
    "only delays",
    "hides it (zero gradient)",
    "does nothing",
    "makes it worse",
    "could not be tried",
]

BEST_FIRST: tuple[Verdict, ...] = get_args(Verdict)
MENDING: tuple[Verdict, ...] = ("mends", "mends but distorts the gradient")


@dataclass(frozen=True)
class Result:
    """One row of the table.

    steps: how many the run was watched for; the bad one at which it halted counts.
    loss: of the last of them. metric: the scenario's training metric after the last good step.
    comparable: whether the loss is the untouched run's loss (None: it could not be told).
    still: parameters whose gradient is zero in every entry in the last step.
    cost: seconds of a step relative to the untouched run's.
    reason: one sentence with the numbers behind the verdict; `said` is what the remedy's
        advocates say.
    evidence: history of the untouched run, and of this one.
    """

    name: str
    title: str
    knobs: Mapping[str, KnobValue]
    said: str
    proposed: bool
    answers_another_question: bool
    verdict: Verdict
    reason: str
    first_bad_step: int | None = None
    steps: int = 0
    loss: float = float("nan")
    metric_name: str = ""
    metric: float = float("nan")
    comparable: bool | None = None
    fidelity: Fidelity = field(default_factory=Fidelity)
    still: int = 0
    cost: float | None = None
    evidence: tuple[HistoryView, HistoryView] | None = None

    @property
    def mends(self) -> bool:
        return self.verdict in MENDING

    @property
    def circulates_but_fails(self) -> bool:
        """Advice that people give for this symptom, that the diagnosis did not, and rightly."""
        return not (self.mends or self.proposed or "+" in self.name)

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values; `fidelity` is null where it has no number."""
        return {
            "name": self.name,
            "title": self.title,
            "knobs": dict(self.knobs),
            "first_bad_step": self.first_bad_step,
            "steps": self.steps,
            "final_loss": self.loss,
            "loss_comparable": self.comparable,
            "metric": self.metric,
            "metric_name": self.metric_name,
            "fidelity": self.fidelity.distance,
            "fidelity_at_end": self.fidelity.at_end,
            "worst_parameter": self.fidelity.parameter,
            "fidelity_note": self.fidelity.note,
            "zero_gradients_at_end": self.still,
            "cost": self.cost,
            "answers_another_question": self.answers_another_question,
            "proposed": self.proposed,
            "verdict": self.verdict,
            "reason": self.reason,
            "said": self.said,
        }


def best_first(results: Iterable[Result]) -> list[Result]:
    """By verdict. Then those that answer the same question, leave every parameter learning and are
    a single remedy; by fidelity, by how long they lived, and by name."""
    return sorted(
        results,
        key=lambda r: (
            BEST_FIRST.index(r.verdict),
            r.answers_another_question,
            r.still,
            "+" in r.name,
            r.fidelity.rank,
            -(r.steps if r.first_bad_step is None else r.first_bad_step),
            r.name,
        ),
    )
