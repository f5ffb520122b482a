"""What is told of a run that has ended: above all why it broke."""

from __future__ import annotations

import math
from typing import Any

from ..scenarios.contract import Scenario
from ..training.program import program_for
from .members import Ended
from .results import RunResult

STOPPED_BY_CHECK = "stopped-by-check"


class Teller:
    """Tells of runs of one structure.

    A step is replayed to find the mechanism where gradients of these parameters have not broken
    before; replaying every broken run would take longer than the sweep.
    """

    def __init__(self, chosen: Scenario) -> None:
        self._chosen = chosen
        self._mechanisms: dict[Any, str] = {}

    def tell(self, ended: Ended) -> RunResult:
        mechanism, replayed = self._mechanism(ended) if ended.bad else ("", False)
        return RunResult(
            task=ended.member.task,
            first_bad_step=int(ended.state.step) if ended.bad else None,
            loss=ended.loss,
            metric=ended.metric,
            broke_first=ended.broke,
            mechanism=mechanism,
            replayed=replayed,
        )

    def _mechanism(self, ended: Ended) -> tuple[str, bool]:
        kind = (ended.broke, math.isfinite(ended.loss))
        new = kind not in self._mechanisms
        if new:
            self._mechanisms[kind] = self._replay(ended)
        return self._mechanisms[kind], new

    def _replay(self, ended: Ended) -> str:
        member, program = ended.member, ended.program
        if self._chosen.checks:
            config = member.config | dict.fromkeys(self._chosen.checks, False)
            shapes = {name: array.shape for name, array in member.parameters.items()}
            program = program_for(self._chosen, config, member.dataset, shapes)
        train = program.tensors(member.dataset.train)
        origins = program.diagnose(ended.state, member.config, train).origins
        return origins[0].mechanism if origins else STOPPED_BY_CHECK
