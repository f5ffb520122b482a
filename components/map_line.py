"""A line across the map, and what happens along it."""

from __future__ import annotations

import streamlit as st

from models.sweeps.grid import along

from .figures.map_cut import map_cut
from .figures.stability_map import Map
from .map_choice import MapChoice
from .plotly_view import plotly_view


def show(drawn: Map, choice: MapChoice, dark: bool) -> None:
    columns, rows = drawn.grid.state.shape
    if rows == 1:
        choice.line = [(0, 0), (columns - 1, 0)]
    elif choice.line:
        buttons(choice, columns, rows)
    if len(choice.line) < 2:
        told = (
            "Now click the cell where the line ends."
            if choice.line
            else ("Click the cell where the line begins, then the one where it ends.")
        )
        st.caption(f":material/show_chart: {told}")
        return
    cells = [(cell[0], cell[1]) for cell in along(choice.line[0], choice.line[1])]
    plotly_view(
        map_cut(drawn.grid, cells, (drawn.x, drawn.y), drawn.steps, dark=dark),
        key="map/cut",
        label=f"Loss and first bad step along a line of {len(cells)} cells",
    )


def buttons(choice: MapChoice, columns: int, rows: int) -> None:
    """Whole rows and columns through the first cell of the line."""
    i, j = choice.line[0]
    with st.container(horizontal=True):
        st.button(
            "Whole row",
            icon=":material/swap_horiz:",
            on_click=_draw,
            args=(choice, (0, j), (columns - 1, j)),
            key="map/row",
        )
        st.button(
            "Whole column",
            icon=":material/swap_vert:",
            on_click=_draw,
            args=(choice, (i, 0), (i, rows - 1)),
            key="map/column",
        )


def _draw(choice: MapChoice, start: tuple[int, int], end: tuple[int, int]) -> None:
    choice.line = [start, end]
