"""What watching costs: `python tests/benchmarks/training.py` (or `make bench`).

Times are this machine's; ratios are what counts. Exit code 1 where a limit is passed.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[2]))

from models.scenarios import scenario, scenarios
from models.training.computing import set_up_tensorflow
from models.training.trainer import Trainer

MOST_FOR_WATCHING = 1.15
MOST_FOR_LENGTH = 1.5
ROUNDS = 15
SECONDS_IN_A_BURST = 0.25
# Each scenario in settings that stay finite for as long as a burst takes.
FINITE: list[tuple[str, str, dict[str, Any]]] = [
    ("balanced_loss", "as-posted", {"epsilon": 1e-4}),
    ("balanced_loss", "mended", {}),
    ("basis_fit", "as-posted", {"x_low": 0.01}),
    ("basis_fit", "mended", {}),
    ("seq2seq", "as-posted", {"initialiser": "glorot"}),
    ("seq2seq", "mended", {}),
]


def trainer(name: str, preset: str = "mended", **changes: Any) -> Trainer:
    chosen = scenario(name)
    config = chosen.config(preset, changes)
    return Trainer(chosen, config, chosen.load(config, None))


def watching(name: str, preset: str, changes: dict[str, Any]) -> tuple[float, float]:
    """Monitored burst over the same burst without monitoring, and the latter's steps a second.

    Medians of bursts that were run in turn.
    """
    t = trainer(name, preset, **changes)
    train = t.program.tensors(t.dataset.train)

    def burst(steps: int, monitor: bool) -> float:
        began = time.perf_counter()
        _, rows = t.program.burst(
            t.state, t.config, train, steps, stop_at_bad=True, monitor=monitor
        )
        assert len(rows.step) == steps, "it must stay finite"
        return time.perf_counter() - began

    for monitor in (False, True):
        burst(1, monitor)  # compiles
    steps = max(1, int(20 * SECONDS_IN_A_BURST / min(burst(20, False) for _ in range(3))))
    pairs = []
    for turn in range(ROUNDS):
        order = (False, True) if turn % 2 else (True, False)
        took = {monitor: burst(steps, monitor) for monitor in order}
        pairs.append((took[True] / took[False], steps / took[False]))
    ratios, rates = zip(*pairs, strict=True)
    return statistics.median(ratios), statistics.median(rates)


def first_step(name: str, **changes: Any) -> float:
    """Seconds from the decision to train to the first measured step."""
    began = time.perf_counter()
    trainer(name, "as-posted", **changes).advance(1)
    return time.perf_counter() - began


def report(what: str, value: float, most: float) -> bool:
    print(f"{what}: {value:.2f} (≤ {most})", flush=True)
    return value <= most


def main() -> int:
    set_up_tensorflow()
    print("Seconds to the first measured step, compiling included:")
    print(f"  the first of all: {first_step('basis_fit'):.2f}")
    for name in scenarios():
        print(f"  {name}: {first_step(name):.2f}, again {first_step(name):.2f}", flush=True)
    short, long = (min(first_step("seq2seq", seq_len=n + i) for i in (1, 2, 3)) for n in (20, 100))
    good = [report("seq2seq, SEQ_LEN 100 over 20, first step", long / short, MOST_FOR_LENGTH)]
    for name, preset, changes in FINITE:
        ratio, rate = watching(name, preset, changes)
        settings = "".join(f", {knob}={value}" for knob, value in changes.items())
        what = f"{name}, {preset}{settings}: watched over bare ({rate:.0f} steps/s)"
        good.append(report(what, ratio, MOST_FOR_WATCHING))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
