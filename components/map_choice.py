"""What a person has chosen on a map by clicks: a cell, an optimiser's trial, a line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st

from models.sweeps.plan import Index, Sweep

from .figures.map_overlays import Overlay, Spots
from .plotly_view import Download, last_click

CELL_CURVES = 5  # of `stability_map`, before its overlays


@dataclass
class MapChoice:
    """Kept in the session as long as the sweep is the same.

    `cell`: complete index. `line`: no, one or two flat cells. `trial`: number of a trial, which
    takes the cell's place until a cell is clicked. `download`: the picture last asked for.
    """

    sweep: Sweep
    cell: Index | None = None
    line: list[tuple[int, int]] = field(default_factory=list)
    trial: int | None = None
    serial: int = 0
    download: Download | None = None

    @classmethod
    def of(cls, name: str, sweep: Sweep) -> MapChoice:
        key = f"{name}/map/choice"
        known = st.session_state.get(key)
        if known is None or known.sweep is not sweep:
            known = st.session_state[key] = cls(sweep)
        return known

    def save(self, kind: str, name: str) -> None:
        """Have the browser save the picture."""
        self.download = Download(kind, name, str(time.time_ns()))

    @property
    def line_ends(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        return (self.line[0], self.line[-1]) if self.line else None

    def flat_cell(self, third: int) -> tuple[int, int] | None:
        """The chosen cell where it is in this layer."""
        if self.cell is None or (len(self.cell) == 3 and self.cell[2] != third):
            return None
        return self.cell[0], self.cell[1] if len(self.cell) > 1 else 0

    def follow(self, key: str, overlays: Sequence[Overlay], tool: str, third: int) -> None:
        """Take up a click on the figure with this key that is not taken up yet."""
        click = last_click(key)
        if click is None or click.serial <= self.serial:
            return
        self.serial = click.serial
        if click.curve < CELL_CURVES:
            row, column = click.point
            self._choose((column, row), tool, third)
        else:
            self._choose_trial(click.curve, click.point[0], overlays)

    def _choose(self, flat: tuple[int, int], tool: str, third: int) -> None:
        inside = all(i < n for i, n in zip(flat, (*self.sweep.shape, 1), strict=False))
        if not inside:  # a click on a map that is gone
            return
        if tool == "line":
            self.line = [*self.line, flat] if len(self.line) == 1 else [flat]
            return
        self.trial = None
        self.cell = (*flat, third)[: len(self.sweep.shape)]

    def _choose_trial(self, curve: int, point: int, overlays: Sequence[Overlay]) -> None:
        first = CELL_CURVES
        for overlay in overlays:
            if isinstance(overlay, Spots) and first == curve and point < len(overlay.spots):
                self.trial = overlay.spots[point].number
            first += overlay.curves
