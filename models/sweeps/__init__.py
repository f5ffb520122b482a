"""Where in the space of settings training stays finite.

sweep = Sweep("balanced_loss", config, (read_axis(scenario, "epsilon=1e-12:1e-2:log:32"),))
run = SweepRun(sweep)
run.start()
run.view()
"""

from .axes import Axis, between, explicit, read_axis
from .boundary import Boundary, find_boundary
from .engines import engine
from .file import read_sweep
from .optimise import Optimisation, Trial
from .plan import Sweep, Task
from .results import RunResult
from .running import Cell, SweepRun, SweepView

__all__ = [
    "Axis",
    "Boundary",
    "Cell",
    "Optimisation",
    "RunResult",
    "Sweep",
    "SweepRun",
    "SweepView",
    "Task",
    "Trial",
    "between",
    "engine",
    "explicit",
    "find_boundary",
    "read_axis",
    "read_sweep",
]
