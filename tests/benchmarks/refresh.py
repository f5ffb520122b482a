"""What one refresh of the live page costs the server, and that it does not grow with the steps.

    python tests/benchmarks/refresh.py

Draws the whole live view of a synthetic run of 20 parameters (all figures, packed as they go to
the browser) at step 200 and at step 1,000,000, in turn, and prints the medians.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from streamlit.testing.v1 import AppTest  # noqa: E402

from models.scenarios import scenario  # noqa: E402
from models.scenarios.contract import Curves, Outcome  # noqa: E402
from models.training.health import FIELDS  # noqa: E402
from models.training.history import History  # noqa: E402
from models.training.live import RunView  # noqa: E402
from models.training.program import Rows  # noqa: E402

PARAMETERS = 20
REPEATS = 15
CHUNK = 5000


class Stand:
    """Stands in for a live run: only what the view asks of it."""

    scenario = scenario("balanced_loss")
    config = scenario.config("mended")
    because = ""

    def gradients(self, snapshot: object = None) -> None:
        return None

    def examine(self) -> None:
        return None


def synthetic_view(steps: int) -> RunView:
    names = tuple(f"layer{i // 2}.{'Wb'[i % 2]}" for i in range(PARAMETERS))
    sizes = np.full(PARAMETERS, 4096)
    history = History(names, sizes)
    generator = np.random.default_rng(0)
    for first in range(0, steps, CHUNK):
        history.add(synthetic_rows(generator, first, min(CHUNK, steps - first)))
    x = np.linspace(0, 1, 64)
    panel = Curves("Fit", x, {"g(x)": x, "ĝ(x)": x**2}, "g(x)", "x", "value")
    health = np.zeros((PARAMETERS, len(FIELDS)))
    view = history.view()
    return RunView(
        "paused", "", steps, 0.5, 1000.0, PARAMETERS, view, health, health,
        Outcome({"R²": 0.9}, (panel,)), None, 0, 0, None, (), {},
    )  # fmt: skip


def synthetic_rows(generator: np.random.Generator, first: int, n: int) -> Rows:
    health = np.zeros((n, PARAMETERS, len(FIELDS)))
    health[..., 5] = np.exp(generator.normal(-5, 3, (n, PARAMETERS)))
    health[..., 6] = health[..., 5] * 3
    health[generator.random((n, PARAMETERS)) < 0.01, 0] = 7
    return Rows(
        np.arange(first, first + n),
        np.exp(generator.normal(-1, 0.3, n)),
        np.zeros(n, np.int64),
        health,
        health,
        np.exp(generator.normal(-6, 1, (n, PARAMETERS))),
    )


def page() -> None:
    import time

    import streamlit as st

    from components.live_view import draw

    began = time.perf_counter()
    draw(st.session_state["run"], st.session_state["view"])
    st.session_state["seconds"] = time.perf_counter() - began


def refresh(view: RunView) -> float:
    """Seconds that drawing `view` takes in a script run."""
    test: Any = AppTest.from_function(page, default_timeout=60)
    test.session_state["run"] = Stand()
    test.session_state["view"] = view
    test.run()
    assert not test.exception, test.exception
    test.run()
    return float(test.session_state["seconds"])


def main() -> None:
    began = time.perf_counter()
    views = {steps: synthetic_view(steps) for steps in (200, 1_000_000)}
    print(f"synthetic histories made in {time.perf_counter() - began:.0f} s")
    seconds: dict[int, list[float]] = {steps: [] for steps in views}
    for _ in range(REPEATS):
        for steps, view in views.items():
            seconds[steps].append(refresh(view))
    medians = {steps: float(np.median(times)) for steps, times in seconds.items()}
    for steps, median in medians.items():
        print(f"refresh at step {steps:>9,}   {1e3 * median:6.1f} ms (≤ 60)")
    print(f"ratio                        {medians[1_000_000] / medians[200]:6.2f}")


if __name__ == "__main__":
    main()
