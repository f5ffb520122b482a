"""A Plotly figure that is mounted once and redrawn in place, with clicks reported back.

`st.plotly_chart` builds its chart anew whenever the figure changes: zoom and hover are lost, and a
blank frame shows now and then. Here each refresh is one `Plotly.react` on the same element, so
both stay, and a click is reported while the figure refreshes, also inside
`@st.fragment(run_every=...)` (the click then reruns that fragment only).

Plotly's script comes from the `plotly` package. It is served by Streamlit under an address with
its version, and each browser fetches it once.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v1 import declare_component

_BROWSER = Path(__file__).with_name("browser")
_STAMP = sha256((_BROWSER / "plotly_view.js").read_bytes()).hexdigest()[:12]

# Streamlit sends a component's own code again at each refresh, so that is only this. The page's
# scripts tell where the server's root is, whatever page and base path is open.
_BOOT = f"""
const script = document.querySelector('script[src*="static/js/"]');
const root = script ? new URL("../../", script.src).href : document.baseURI;
const code = `${{root}}component/{__name__}.browser/plotly_view.js?v={_STAMP}`;
const page = {{
  plotly: `${{root}}component/{__name__}.plotly/plotly.min.js?v={version("plotly")}`,
  failed: "The chart cannot be drawn because a script did not load. " +
    "Check that the server is running, then reload the page.",
}};
export default async (component) => {{
  try {{
    return (await import(code)).default(component, page);
  }} catch (error) {{
    console.error(error);
    component.parentElement.textContent = page.failed;
  }}
}};
"""

_component = st.components.v2.component(
    "nanatomy.plotly_view",
    js=_BOOT,
    isolate_styles=False,  # Plotly puts its style sheet into the document
)


@dataclass(frozen=True)
class Download:
    """A picture that the browser is to save, once for each new `serial`.

    Attributes:
        format: "png" or "svg".
        name: of the file, without its ending.
        serial: tells a new wish from the last one.
    """

    format: str
    name: str
    serial: str


@dataclass(frozen=True)
class Click:
    """One click on a point or a cell.

    Attributes:
        curve: index of the clicked trace in the figure's `data`.
        x: the point's x: a number, or a name on a category axis.
        y: the point's y, likewise.
        point: index in the trace: `(row, column)` for a heatmap, `(index,)` for points.
        serial: milliseconds since 1970: tells a new click from the last one.
    """

    curve: int
    x: float | str
    y: float | str
    point: tuple[int, ...]
    serial: int


def plotly_view(
    figure: Mapping[str, Any],
    *,
    key: str,
    label: str,
    height: int | None = None,
    download: Download | None = None,
) -> Click | None:
    """Shows a figure across the container's width; a refresh redraws it in place.

    Text, grid and background follow Streamlit's theme unless the figure's layout sets them. Zoom
    and hover stay as long as `layout["uirevision"]` stays the same (by default, for ever).
    `layout["meta"]["narrow"]` is merged into the layout below 600 px.

    Args:
        figure: a dict with `data` and `layout` in Plotly's JSON form, as `components.figures`
            makes it: arrays by `typed`; lists and scalars finite.
        key: names the mount; the same key on the next run is the same element.
        label: what the figure shows, in a sentence, for screen readers.
        height: in pixels; by default the layout's own.
        download: has the browser save the picture when its serial changes.

    Returns:
        The last click, or None before the first. It stays the same over later reruns: a new one
        has a greater `serial`.

    Raises:
        ValueError: NaN or Inf outside a typed array, which JSON cannot hold.
    """
    _serve_scripts()
    layout = {**figure["layout"], "height": height or figure["layout"].get("height", 360)}
    saved = {} if download is None else {"download": asdict(download)}
    message = pack({"data": figure["data"], "layout": layout, "label": label, **saved})
    return _as_click(_component(key=key, data=message, on_click_change=lambda: None).get("click"))


def last_click(key: str) -> Click | None:
    """The click that `plotly_view` with this key is about to return, before it is drawn."""
    state = st.session_state.get(key)
    return _as_click(state.get("click") if state else None)


def _as_click(click: Any) -> Click | None:
    return Click(**{**click, "point": tuple(click["point"])}) if click else None


def load_plotly() -> None:
    """Has the browser fetch and read Plotly's script before the first figure is there."""
    _serve_scripts()
    _component(key="plotly")


def is_dark() -> bool:
    """Whether this browser shows Streamlit's dark theme (False until it is known)."""
    return st.context.theme.type == "dark"


def pack(message: Mapping[str, Any]) -> bytes:
    """Compressed JSON, as it goes to the browser at each refresh."""
    text = json.dumps(message, separators=(",", ":"), allow_nan=False)
    return zlib.compress(text.encode(), level=6)


@st.cache_resource(show_spinner=False)
def _serve_scripts() -> None:
    """Lets Streamlit serve the two folders that `_BOOT` names (after this module and these)."""
    declare_component("browser", path=str(_BROWSER))
    declare_component("plotly", path=str(files("plotly") / "package_data"))
