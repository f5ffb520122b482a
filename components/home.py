"""Home: what this is, and a card for each scenario."""

from __future__ import annotations

import streamlit as st

from models.scenarios import scenarios
from models.scenarios.contract import Scenario


def show() -> None:
    st.title("Why did my gradients become NaN?")
    st.markdown(
        "Pick a failure that somebody reported, turn its knobs while it trains, and watch each "
        "parameter's gradients lose or keep their finiteness."
    )
    for column, scenario in zip(st.columns(len(scenarios())), scenarios().values(), strict=True):
        with column:
            card(scenario)


def card(scenario: Scenario) -> None:
    with st.container(border=True, height="stretch"):
        st.subheader(scenario.title)
        st.markdown(scenario.story)
        st.caption(scenario.question)
        for preset in scenario.presets:
            st.page_link(
                "pages/laboratory.py",
                label=f"Open {preset.title.lower()}",
                icon=":material/play_circle:",
                query_params={"scenario": scenario.name, "preset": preset.name},
            )
