"""What watching costs: `python tests/benchmarks/training.py` (or `make bench`).

Times are this machine's; ratios are what counts. Exit code 1 where a limit is passed.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[2]))

from models.scenarios import scenario, scenarios
from models.training.trainer import Trainer

MOST_FOR_WATCHING = 1.15
MOST_FOR_LENGTH = 1.5
ROUNDS = 15
SECONDS_IN_A_BURST = 0.25


def trainer(name: str, preset: str = "mended", **changes: Any) -> Trainer:
    chosen = scenario(name)
    config = chosen.config(preset, changes)
    return Trainer(chosen, config, chosen.load(config, None))


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def watching(name: str, preset: str) -> tuple[float, float]:
    """Monitored burst over the same burst without monitoring (median of pairs run in turn), and
    the bare burst's steps a second. Bad steps are applied, so that both loops do all their work."""
    t = trainer(name, preset, on_bad="continue")
    train = t.program.tensors(t.dataset.train)

    def burst(steps: int, monitor: bool) -> Callable[[], object]:
        return lambda: t.program.burst(
            t.state, t.config, train, steps, stop_at_bad=False, monitor=monitor
        )

    for monitor in (False, True):
        burst(1, monitor)()  # compiles
    burst(20, False)()
    steps = max(1, int(20 * SECONDS_IN_A_BURST / seconds(burst(20, False))))
    pairs = []
    for turn in range(ROUNDS):
        order = (False, True) if turn % 2 else (True, False)
        took = {monitor: seconds(burst(steps, monitor)) for monitor in order}
        pairs.append((took[True] / took[False], steps / took[False]))
    ratios, rates = zip(*pairs, strict=True)
    return statistics.median(ratios), statistics.median(rates)


def first_step(name: str, **changes: Any) -> float:
    """From the decision to train to the first measured step, compiling included."""
    return seconds(lambda: trainer(name, "as-posted", **changes).advance(1))


def main() -> int:
    passed = True
    print(
        f"first step in a fresh process, TensorFlow's import included: {first_step('basis_fit'):.1f} s"
    )
    for name in scenarios():
        cold = (
            first_step(name, hidden=60)
            if name == "seq2seq"
            else first_step(name, points=65)
            if name == "basis_fit"
            else first_step(name, hidden_1=15)
        )
        print(
            f"{name}: first step {cold:.2f} s to compile, {first_step(name):.2f} s compiled before"
        )
    short, long = first_step("seq2seq", seq_len=20), first_step("seq2seq", seq_len=101)
    passed &= long / short <= MOST_FOR_LENGTH
    print(f"seq2seq: first step at SEQ_LEN 101 / 20 = {long / short:.2f} (≤ {MOST_FOR_LENGTH})")
    for name in scenarios():
        for preset in ("as-posted", "mended"):
            ratio, rate = watching(name, preset)
            passed &= ratio <= MOST_FOR_WATCHING
            print(
                f"{name}, {preset}: watched / bare = {ratio:.3f} (≤ {MOST_FOR_WATCHING}), "
                f"bare {rate:.0f} steps/s",
                flush=True,
            )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
