"""Home: what this is, a card for each scenario, and how to read the pictures."""

from __future__ import annotations

import streamlit as st

from models.scenarios import scenarios
from models.scenarios.contract import Scenario

from .palette import STATES, palette
from .plotly_view import is_dark

STEPS = (
    (
        ":material/grid_on: Watch",
        "Train live and turn ε, bounds, clipping or the learning rate while you see, for every "
        "parameter and step, how large its gradient is and where it stops being finite.",
    ),
    (
        ":material/troubleshoot: Understand",
        "When it breaks, the step is replayed operation by operation: which operation, on which "
        "line, with which numbers, and why.",
    ),
    (
        ":material/healing: Mend",
        "Every remedy that people advise is run from the same seed. The table says which ones "
        "mend, which only delay, and which do nothing.",
    ),
    (
        ":material/grid_on: Map",
        "Hundreds of settings at once show where training stays finite, how it breaks elsewhere, "
        "and where exactly the boundary is.",
    ),
)


def show() -> None:
    st.title("Why did my gradients become NaN?")
    st.markdown(
        "Pick a failure that somebody reported. See it break, find the operation that broke it, "
        "and prove what mends it."
    )
    for column, scenario in zip(st.columns(len(scenarios())), scenarios().values(), strict=True):
        with column:
            card(scenario)
    for column, (title, text) in zip(st.columns(len(STEPS)), STEPS, strict=True):
        column.markdown(f"**{title}**  \n{text}")
    states()


def card(scenario: Scenario) -> None:
    with st.container(border=True, height="stretch"):
        st.subheader(scenario.title)
        st.markdown(scenario.story)
        st.markdown(f"*{scenario.question}*")
        with st.container(horizontal=True, height="stretch", vertical_alignment="bottom"):
            for preset in scenario.presets:
                st.page_link(
                    "pages/laboratory.py",
                    label=preset.title,
                    icon=":material/play_circle:",
                    help=preset.story,
                    query_params={"scenario": scenario.name, "preset": preset.name},
                )
            st.page_link(
                "pages/stability_map.py",
                label="Map",
                icon=":material/grid_on:",
                help="Where in the space of settings it stays finite.",
                query_params={"scenario": scenario.name},
            )


def states() -> None:
    """The colours and marks of the heatmaps."""
    colours = palette(is_dark())
    cells = [f'<span style="color:{colours.finite[len(colours.finite) // 2]}">■</span> finite']
    for state, colour in zip(STATES, colours.states(), strict=True):
        cells.append(f'<span style="color:{colour}">■</span> {state.glyph} {state.name}')
    st.markdown("In the heatmaps: " + " &emsp; ".join(cells), unsafe_allow_html=True)
