"""What is trained: the contract, and one file a scenario.

Every module in this folder that defines `SCENARIO` is a scenario; nothing else registers it.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from ..errors import BadInput
from .contract import Scenario


@cache
def scenarios() -> dict[str, Scenario]:
    """Name → scenario, in the order of their file names."""
    modules = (import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__))
    found = (getattr(module, "SCENARIO", None) for module in modules)
    return {scenario.name: scenario for scenario in found if scenario is not None}


def scenario(name: str) -> Scenario:
    """The scenario of that name; BadInput names those that exist."""
    if name not in scenarios():
        raise BadInput(
            f"There is no scenario “{name}”; there are {', '.join(scenarios())}.", field="scenario"
        )
    return scenarios()[name]
