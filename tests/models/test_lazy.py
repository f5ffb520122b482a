"""TensorFlow and Keras, first used by several threads at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RACE = """
import threading
from models.lazy import keras, tf
done = []
uses = [lambda: keras.optimizers.SGD, lambda: tf.constant(0.0)] * 2
threads = [threading.Thread(target=lambda use=use: done.append(use())) for use in uses]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(done) == len(uses)
"""


def test_threads_that_begin_at_different_ends_both_get_whole_modules() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", RACE],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
