"""A link that opens one run of a sweep in the laboratory, where it starts by itself."""

from __future__ import annotations

import streamlit as st

from models.scenarios.knobs import Config

from .settings import OWN_DATA, START, Settings


def show(settings: Settings, config: Config, label: str, *, own_data: bool) -> None:
    """`config`: all knobs of the run; it halts at its first bad step."""
    run = Settings(settings.scenario, settings.preset, config)
    query = run.query() | {START: "1"} | ({OWN_DATA: "1"} if own_data else {})
    st.page_link(
        "pages/laboratory.py",
        label=label,
        icon=":material/open_in_new:",
        help="Opens this very run in the laboratory: same seed and knobs, from step 0 to the bad "
        "step, which is then diagnosed.",
        query_params=query,
    )
