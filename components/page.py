"""What every page begins with."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from models.training.warm import warm_up

from .plotly_view import load_plotly

ICON = Path(__file__).parent / "browser" / "icon.svg"  # Material icons would come from elsewhere
PAGES = (
    ("app.py", "Home", ":material/home:"),
    ("pages/laboratory.py", "Laboratory", ":material/science:"),
    ("pages/stability_map.py", "Stability map", ":material/grid_on:"),
    ("pages/story.py", "Story", ":material/slideshow:"),
)


def begin_page(title: str) -> None:
    """Page settings and navigation; must be the page's first call. TensorFlow loads behind it."""
    st.set_page_config(page_title=f"{title} · NaNatomy", page_icon=str(ICON), layout="wide")
    with st.sidebar:
        st.markdown("### NaNatomy")
        with st.container(horizontal=True, gap="small"):
            for path, label, icon in PAGES:
                st.page_link(path, label=label, icon=icon)
        load_plotly()
    warm_up()
