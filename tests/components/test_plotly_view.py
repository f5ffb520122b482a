"""What the component sends, seen from the server's side."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.plotly_view import pack


def script(key: str, values: list[float]) -> None:
    import streamlit as st  # noqa: PLC0415 (AppTest runs this function's text alone)

    from components.plotly_view import plotly_view  # noqa: PLC0415

    bar = {"type": "bar", "y": values}
    layout = {"xaxis": {}, "yaxis": {}, "height": 222}
    click = plotly_view({"data": [bar], "layout": layout}, key=key, label="Some bars")
    st.text(f"click {click}")


def run(key: str, values: list[float]) -> Any:
    return AppTest.from_function(script, kwargs={"key": key, "values": values}).run()


def sent(app: Any) -> Any:
    (element,) = app.get("bidi_component")
    return element.proto


def test_the_figure_is_sent_as_compressed_json() -> None:
    app = run("bars", [1, 2])
    assert not app.exception
    message = json.loads(zlib.decompress(sent(app).bytes))
    assert message["data"] == [{"type": "bar", "y": [1, 2]}]
    assert message["layout"]["height"] == 222
    assert message["label"] == "Some bars"
    assert app.text[0].value == "click None"


def test_a_changed_figure_is_the_same_element() -> None:
    assert sent(run("bars", [1, 2])).id == sent(run("bars", [3, 4])).id
    assert sent(run("bars", [1, 2])).id != sent(run("other", [1, 2])).id


def test_the_code_sent_with_each_refresh_is_small() -> None:
    proto = sent(run("bars", [1]))
    assert len(proto.js_content) < 1_500
    assert "Plotly.react" not in proto.js_content
    assert "plotly.min.js?v=" in proto.js_content


def test_a_number_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack({"y": [float("nan")]})
