"""How long the trials of each scenario take as posted, and what others notice of them.

    python tests/benchmarks/remedies.py [SCENARIO …]

Prints seconds to the untouched row, to the first remedy and to the last; then, for somebody else's
live run, the milliseconds between two moments at which it has something new to show, idle and
while the trials go on.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from models.remedies.trials import Trials
from models.scenarios import scenario
from models.training.live import LiveRun
from models.training.warm import loading

STEPS = {"balanced_loss": 800}
# Another shape, for which no graph has been compiled yet.
ANOTHER = {
    "balanced_loss": {"hidden_1": 17},
    "basis_fit": {"points": 65},
    "seq2seq": {"hidden": 63},
}
IDLE_SECONDS = 5.0


def trials_of(name: str, **changes: Any) -> Trials:
    chosen = scenario(name)
    config = chosen.config("as-posted", changes)
    return Trials(chosen, config, chosen.load(config, None), steps=STEPS.get(name))


def arrivals(trials: Trials) -> list[float]:
    """Seconds from the start to each row, the untouched one first."""
    began = time.perf_counter()
    trials.start()
    return [time.perf_counter() - began for _ in trials]


def somebody_else() -> LiveRun:
    chosen = scenario("balanced_loss")
    config = chosen.config("mended", {"seed": 7})
    run = LiveRun(chosen, config, chosen.load(config, None))
    run.wait_until_built()
    run.start()
    return run


def gaps(run: LiveRun, trials: Trials | None) -> list[float]:
    """Milliseconds between changes of what the run shows, for as long as the trials go on."""
    found, step, since = [], -1, time.perf_counter()
    until = since + IDLE_SECONDS
    while trials.running if trials else time.perf_counter() < until:
        view = run.view()
        now = time.perf_counter()
        if view is not None and view.step != step:
            found.append(1000 * (now - since))
            step, since = view.step, now
        time.sleep(0.002)
    return found[1:]


def main() -> None:
    names = sys.argv[1:] or ["balanced_loss", "basis_fit", "seq2seq"]
    loading().join()
    for name in names:
        trials = trials_of(name)
        seconds = arrivals(trials)
        print(
            f"{name}: untouched {seconds[0]:.1f} s, first remedy {seconds[1]:.1f} s, "
            f"all {len(seconds) - 1} remedies {seconds[-1]:.1f} s",
            flush=True,
        )
    run = somebody_else()
    time.sleep(2)
    for name in names:
        idle = gaps(run, None)
        trials = trials_of(name, **ANOTHER[name])
        trials.start()
        beside = gaps(run, trials)
        medians = float(np.median(idle)), float(np.median(beside))
        print(
            f"beside {name}: a live run shows news every "
            f"{medians[0]:.0f} ms idle, {medians[1]:.0f} ms beside the trials "
            f"({medians[1] / medians[0]:.2f} times); 95 %: "
            f"{np.quantile(idle, 0.95):.0f} and {np.quantile(beside, 0.95):.0f} ms",
            flush=True,
        )
    run.close()


if __name__ == "__main__":
    main()
