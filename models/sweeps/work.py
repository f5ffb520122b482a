"""Everything that belongs to one map: its sweep, and what is searched for on it."""

from __future__ import annotations

from .boundary_curve import BoundaryCurve
from .optimising import OptimisationRun
from .running import SweepRun


class MapWork:
    """Held by a registry; while nobody holds the lease, nothing of it is computed."""

    def __init__(self, run: SweepRun) -> None:
        self.run = run
        self.boundary: BoundaryCurve | None = None
        self.optimisation: OptimisationRun | None = None

    @property
    def running(self) -> bool:
        """Whether the sweep is; searches are not taken up again by `start`."""
        return self.run.running

    @property
    def active(self) -> bool:
        """Whether anything on the map may still change by itself."""
        searching = any(s is not None and s.running for s in (self.boundary, self.optimisation))
        return searching or self.run.status == "running"

    def start(self) -> None:
        self.run.start()

    def pause(self) -> None:
        self.run.stop()
        self.stop_searching()

    def close(self) -> None:
        self.stop_searching()
        self.run.close()

    def stop_searching(self) -> None:
        for search in (self.boundary, self.optimisation):
            if search is not None:
                search.stop()
