"""Heading of a page about one scenario: which scenario, which preset, and what they are."""

from __future__ import annotations

import streamlit as st

from models.scenarios import scenarios

from .settings import Settings, choose_scenario


def show(settings: Settings) -> None:
    names = list(scenarios())
    current = settings.scenario
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.segmented_control(
            "Scenario",
            names,
            default=current.name,
            required=True,
            key=f"choose-scenario/{current.name}",
            format_func=lambda name: scenarios()[name].title,
        )
        if name != current.name:
            choose_scenario(type(settings), name)
            st.rerun()
        presets = {preset.name: preset for preset in current.presets}
        preset = st.segmented_control(
            "Preset",
            list(presets),
            default=settings.preset,
            required=True,
            key=f"choose-preset/{current.name}/{settings.preset}",
            format_func=lambda name: presets[name].title,
        )
        if preset != settings.preset:
            settings.use_preset(preset)
            st.rerun()
    st.markdown(f"{current.story} {presets[settings.preset].story}")
    for notice in settings.notices:
        st.warning(notice, icon=":material/link_off:")
