"""Source panel: a person's own data instead of the scenario's."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from models.inputs.text import MAX_MEGABYTES

from .callbacks import uncut
from .settings import Settings


def show(settings: Settings) -> DeltaGenerator:
    """Draw the upload; `settings.content` follows it. Returns a place for an error."""
    source, name = settings.scenario.source, settings.scenario.name
    version = st.session_state.setdefault(f"{name}/uploads", 0)
    with st.expander("Your own data", expanded=True, icon=":material/upload_file:"):
        key = f"{name}/file/{version}"
        st.file_uploader(
            source.label,
            type=list(source.file_types),
            max_upload_size=MAX_MEGABYTES,
            help=source.help,
            key=key,
            on_change=_take,
            args=(settings, key),
        )
        place = st.empty()
        if settings.content is not None:
            st.button(
                "Back to the scenario's own data",
                icon=":material/undo:",
                on_click=forget,
                args=(settings,),
                key=f"{name}/own-data",
            )
    return place


@uncut
def forget(settings: Settings) -> None:
    """Return to the scenario's own data, with an empty upload."""
    settings.content = None
    st.session_state[f"{settings.scenario.name}/uploads"] += 1


@uncut
def _take(settings: Settings, key: str) -> None:
    file = st.session_state[key]
    settings.content = file.getvalue() if file is not None else None
    st.session_state[f"{settings.scenario.name}/content"] = settings.content  # for links within
