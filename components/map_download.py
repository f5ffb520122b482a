"""The map and its trials as files: CSV, Parquet, PNG, SVG."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pandas as pd
import streamlit as st

from models.sweeps.table import Columns, cell_columns, trial_columns
from models.sweeps.work import MapWork

from .map_choice import MapChoice


def show(work: MapWork, choice: MapChoice, name: str) -> None:
    stem = f"stability-map-{name}"
    st.caption("Every run with its settings, as it stands now; the picture as it is drawn above.")
    with st.container(horizontal=True):
        for kind in ("png", "svg"):
            st.button(
                f"Picture ({kind.upper()})",
                icon=":material/image:",
                on_click=choice.save,
                args=(kind, stem),
                key=f"map/{kind}",
            )
        tables(stem, "Cells", lambda: cell_columns(work.run.sweep, work.run.cells()))
        if work.optimisation is not None:
            tables(f"{stem}-trials", "Trials", lambda: trials(work))


def tables(stem: str, what: str, columns: Callable[[], Columns]) -> None:
    """Two buttons; a table is made when it is asked for."""
    st.download_button(
        f"{what} (CSV)",
        lambda: pd.DataFrame(columns()).to_csv(index=False).encode(),
        file_name=f"{stem}.csv",
        mime="text/csv",
        icon=":material/table:",
        on_click="ignore",
        key=f"map/{what}/csv",
    )
    st.download_button(
        f"{what} (Parquet)",
        lambda: _parquet(columns()),
        file_name=f"{stem}.parquet",
        mime="application/vnd.apache.parquet",
        icon=":material/table:",
        on_click="ignore",
        key=f"map/{what}/parquet",
    )


def _parquet(columns: Columns) -> bytes:
    file = BytesIO()
    frame = pd.DataFrame(columns)
    frame.astype({"first_bad_step": "Int64"}).to_parquet(file, index=False)
    return file.getvalue()


def trials(work: MapWork) -> Columns:
    if work.optimisation is None:
        return {}
    asked = work.optimisation.optimisation
    return trial_columns([given.knob for given in asked.ranges], work.optimisation.trials)
