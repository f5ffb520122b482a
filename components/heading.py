"""Heading of a page about one scenario: which scenario, which preset, and what they are."""

from __future__ import annotations

import streamlit as st

from models.scenarios import scenarios

from .callbacks import uncut
from .settings import Settings, choose_scenario


def show(settings: Settings) -> None:
    names = list(scenarios())
    current = settings.scenario
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Scenario",
            names,
            default=current.name,
            required=True,
            key=f"choose-scenario/{current.name}",
            format_func=lambda name: scenarios()[name].title,
            on_change=_choose_scenario,
            args=(settings,),
        )
        presets = {preset.name: preset for preset in current.presets}
        st.segmented_control(
            "Preset",
            list(presets),
            default=settings.preset,
            required=True,
            key=f"choose-preset/{current.name}/{settings.preset}",
            format_func=lambda name: presets[name].title,
            on_change=_choose_preset,
            args=(settings,),
        )
    st.markdown(f"{current.story} {presets[settings.preset].story}")
    for notice in settings.notices:
        st.warning(notice, icon=":material/link_off:")


@uncut
def _choose_scenario(settings: Settings) -> None:
    name = st.session_state[f"choose-scenario/{settings.scenario.name}"]
    choose_scenario(type(settings), name)


@uncut
def _choose_preset(settings: Settings) -> None:
    key = f"choose-preset/{settings.scenario.name}/{settings.preset}"
    settings.use_preset(st.session_state[key])
