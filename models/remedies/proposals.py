"""Which remedies a diagnosis proposes."""

from __future__ import annotations

from ..diagnosis import Diagnosis
from ..scenarios.contract import Scenario


def proposals(scenario: Scenario, diagnosis: Diagnosis) -> list[str]:
    """Names of the remedies that are meant for what the diagnosis found, in the scenario's order:
    first those that undo a circumstance of an origin (what let it through), then those that avoid
    its mechanism."""
    circumstances = {c for origin in diagnosis.origins for c in origin.circumstances}
    mechanisms = {origin.mechanism for origin in diagnosis.origins}
    return [
        remedy.name
        for found in (circumstances, mechanisms - circumstances)
        for remedy in scenario.remedies
        if found & set(remedy.addresses)
    ]
