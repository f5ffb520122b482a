"""Source panel: a person's own data instead of the scenario's."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.typing import UploadedFile

from models.inputs.text import MAX_MEGABYTES

from .settings import Settings


def show(settings: Settings) -> DeltaGenerator:
    """Draw the upload; `settings.content` follows it. Returns a place for an error."""
    source, name = settings.scenario.source, settings.scenario.name
    key = f"{name}/file/{settings.uploads}"
    if key not in st.session_state:  # an upload is empty when the page is opened again
        settings.upload = None
    with st.expander("Your own data", expanded=True, icon=":material/upload_file:"):
        file = st.file_uploader(
            source.label,
            type=list(source.file_types),
            max_upload_size=MAX_MEGABYTES,
            help=source.help,
            key=key,
        )
        follow(settings, file)
        place = st.empty()
        if settings.content is not None:
            st.button(
                "Back to the scenario's own data",
                icon=":material/undo:",
                on_click=settings.forget_data,
                key=f"{name}/own-data",
            )
    return place


def follow(settings: Settings, file: UploadedFile | None) -> None:
    """Take up a file that was brought or taken away (not in a callback: see `Settings`)."""
    upload = file.file_id if file is not None else None
    if upload == settings.upload:
        return
    content = file.getvalue() if file is not None else None
    st.session_state[f"{settings.scenario.name}/content"] = content  # for links within
    settings.content, settings.upload = content, upload
