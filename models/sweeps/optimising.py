"""An optimisation behind a page: its trials so far, and the best of them."""

from __future__ import annotations

from .background import Background
from .optimise import Optimisation, Trial, best


class OptimisationRun(Background):
    def __init__(self, optimisation: Optimisation) -> None:
        self.optimisation = optimisation
        self.trials: tuple[Trial, ...] = ()
        super().__init__()

    @property
    def best(self) -> Trial | None:
        return best(self.trials)

    @property
    def progress(self) -> tuple[float, str]:
        done, total = len(self.trials), self.optimisation.trials
        return done / total, f"{done} of {total} trials"

    def work(self) -> None:
        for trials in self.optimisation.run(self.watch):
            self.trials = (*self.trials, *trials)
