"""The Plotly component in a real browser: one mount, kept zoom and hover, clicks, themes, paths."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

LIVE = """
import numpy as np, streamlit as st
from components.figures.arrays import typed
from components.plotly_view import plotly_view

runs = st.session_state.setdefault("runs", {"page": 0, "live": 0})
runs["page"] += 1

@st.fragment(run_every=0.3)
def live():
    runs["live"] += 1
    z = np.arange(200, dtype=np.float32).reshape(10, 20) + runs["live"]
    heat = {"type": "heatmap", "z": typed(z), "y": [f"w{i}" for i in range(10)],
            "colorscale": [[0, "#DC267F"], [1, "#DC267F"]], "showscale": False}
    axes = {"xaxis": {}, "yaxis": {}, "margin": {"l": 40, "r": 10, "t": 10, "b": 30}, "height": 300}
    clicks = [plotly_view({"data": [heat], "layout": axes}, key="heat", label="Heat")]
    x = np.arange(50, dtype=np.float64)
    line = {"type": "scatter", "x": typed(x), "y": typed(x * runs["live"])}
    clicks.append(plotly_view({"data": [line], "layout": axes}, key="line", label="Line"))
    st.text(f"live {runs['live']} page {runs['page']}")
    for click in clicks:
        st.text(f"click {click}")

live()
"""

ONCE = """
import streamlit as st
from components.plotly_view import is_dark, plotly_view
bar = {"type": "bar", "x": ["a", "b"], "y": [1, 2]}
plotly_view({"data": [bar], "layout": {"xaxis": {}, "yaxis": {}}}, key="bar", label="Two bars")
st.text(f"dark {is_dark()}")
"""

SECOND = """
import streamlit as st
from components.plotly_view import plotly_view
bar = {"type": "bar", "x": ["c"], "y": [1]}
plotly_view({"data": [bar], "layout": {"xaxis": {}, "yaxis": {}}}, key="second", label="One bar")
"""

HEALTH = """
import numpy as np
from components.figures import health_heatmap
from components.plotly_view import plotly_view
from models.training.history import HealthArrays, HistoryView

whole = lambda *rows: np.array(rows, np.int64)
none = whole([0, 0], [0, 0])
health = HealthArrays(nan=whole([0, 7], [0, 0]), posinf=none, neginf=none,
                      zero=whole([1, 0], [2, 0]), subnormal=none,
                      max_abs=np.array([[1e-3, 2e5], [0.0, 1.0]]),
                      norm=np.array([[2e-3, 4e5], [0.0, 1.0]]), step=whole([101, 123], [100, 122]))
view = HistoryView(("encoder.Wz", "by"), whole(12, 2), whole(100, 120), whole(119, 123),
                   np.array([1.0, 2.0]), health, health, np.full((2, 2), np.nan), ())
plotly_view(health_heatmap(view), key="health", label="Gradient health")
"""

READY = "() => document.querySelectorAll('.js-plotly-plot:not([aria-busy])').length >= {}"
Opener = Callable[..., Any]


def ready(page: Any, figures: int = 1) -> None:
    page.wait_for_function(READY.format(figures))


def live_count(page: Any) -> int:
    return int(re.findall(r"live (\d+)", page.get_by_text("live").inner_text())[0])


def wait_refreshes(page: Any, more: int) -> None:
    until = live_count(page) + more
    page.wait_for_function(
        f"() => +document.body.innerText.match(/live (\\d+)/)?.[1] >= {until}", timeout=30_000
    )


def centre(page: Any, figure: int = 0) -> tuple[float, float]:
    box = page.locator(".js-plotly-plot .nsewdrag").nth(figure).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_one_mount_keeps_zoom_and_hover_and_is_never_blank(
    serve: Callable[..., str], open_page: Opener
) -> None:
    page = open_page(serve(LIVE))
    ready(page, 2)
    page.evaluate(
        """() => {
            const host = window.host = document.querySelector('.js-plotly-plot');
            window.removed = 0;
            new MutationObserver((changes) => {
                for (const { removedNodes } of changes)
                    for (const node of removedNodes) if (node.contains(host)) window.removed += 1;
            }).observe(document.body, { childList: true, subtree: true });
        }"""
    )
    x, y = centre(page)
    page.mouse.move(x - 100, y - 50)
    page.mouse.down()
    page.mouse.move(x + 100, y + 50, steps=4)
    page.mouse.up()
    zoomed = page.evaluate("() => host._fullLayout.xaxis.range")
    assert zoomed[1] - zoomed[0] < 15  # of 20 columns

    box = page.locator(".js-plotly-plot").first.bounding_box()
    started, seen = live_count(page), []
    while live_count(page) < started + 12:
        png = page.screenshot(clip=box)
        pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).reshape(-1, 3)
        seen.append(np.mean(np.all(np.abs(pixels - np.array([0xDC, 0x26, 0x7F])) < 8, axis=1)))
    assert len(seen) >= 10
    assert min(seen) > 0.5
    assert min(seen) > 0.98 * max(seen)
    assert page.evaluate("() => [host === document.querySelector('.js-plotly-plot'), removed]") == [
        True,
        0,
    ]
    assert page.evaluate("() => host._fullLayout.xaxis.range") == zoomed
    assert page.evaluate("() => host.calcdata[0][0].z[0][0]") > started  # it did refresh

    page.mouse.move(x, y)
    page.wait_for_selector(".hoverlayer .hovertext")
    first = page.locator(".hoverlayer").first.text_content()
    page.wait_for_function(
        "(first) => { const now = document.querySelector('.hoverlayer').textContent;"
        " return now && now !== first; }",
        arg=first,
    )  # the same cell's hover, with the newer value


QUICK = """() => {
    const figure = document.querySelector('.js-plotly-plot');
    const axes = figure.querySelector('.nsewdrag');
    const { x, y, width, height } = axes.getBoundingClientRect();
    const reported = [];
    figure.on('plotly_click', ({ points: [point] }) => reported.push(point.x));
    const send = (target, kind, share) => {
        const place = { clientX: x + width * share, clientY: y + height / 2 };
        const make = kind.startsWith('pointer') ? PointerEvent : MouseEvent;
        target.dispatchEvent(new make(kind, { ...place, bubbles: true, button: 0, buttons: 1 }));
    };
    send(axes, 'mousemove', 0.06);
    for (const kind of ['mousemove', 'pointerdown', 'mousedown']) send(axes, kind, 0.94);
    const cover = document.querySelector('.dragcover') ?? document;
    for (const kind of ['pointerup', 'mouseup']) send(cover, kind, 0.94);
    return reported;
}"""


def test_a_quick_click_reports_the_cell_under_it(
    serve: Callable[..., str], open_page: Opener
) -> None:
    page = open_page(serve(LIVE))
    ready(page, 2)
    assert page.evaluate(QUICK) == [18]  # of 20 columns, at 0.94 of the width


def test_clicks_are_reported_while_it_refreshes_and_rerun_the_fragment_only(
    serve: Callable[..., str], open_page: Opener
) -> None:
    page = open_page(serve(LIVE))
    ready(page, 2)
    x, y = centre(page)
    page.mouse.move(x + 5, y + 5)
    page.mouse.down()
    time.sleep(0.8)  # more than two refreshes long
    page.mouse.up()
    first = page.get_by_text("click Click(curve=0, x=10, y='w4', point=(4, 10)")
    first.wait_for()
    serials = []
    for column in range(3):
        page.mouse.move(x + 5 + column * 50, y + 5)
        page.wait_for_timeout(350)
        page.mouse.click(x + 5 + column * 50, y + 5)
        page.wait_for_timeout(700)
        text = page.get_by_text("click Click").inner_text()
        serials.append(int(re.findall(r"serial=(\d+)", text)[0]))
    assert serials == sorted(set(serials))
    page.wait_for_timeout(700)
    assert str(serials[-1]) in page.get_by_text("click Click").inner_text()  # old, not repeated
    assert page.get_by_text("click None").count() == 1  # the other figure was not clicked
    assert page.get_by_text("page 1").count() == 1  # the page itself ran once


def test_plotly_is_fetched_once_and_is_not_in_the_refreshes(
    serve: Callable[..., str], open_page: Opener
) -> None:
    url = serve(LIVE)
    page = open_page()
    scripts, frames = [], []
    page.on("response", lambda r: scripts.append(r) if "plotly.min.js" in r.url else None)
    page.on("websocket", lambda s: s.on("framereceived", lambda f: frames.append(len(f))))
    page.goto(url)
    ready(page, 2)
    wait_refreshes(page, 5)
    assert len(scripts) == 1
    assert scripts[0].status == 200
    assert "public" in scripts[0].headers["cache-control"]
    assert "no-store" not in scripts[0].headers["cache-control"]
    assert re.search(r"\?v=\d+\.\d+", scripts[0].url)
    assert max(frames) < 40_000

    again = page.context.new_page()
    again.goto(url)
    ready(again, 2)
    entries = again.evaluate("() => JSON.stringify(performance.getEntriesByType('resource'))")
    sizes = [e["transferSize"] for e in json.loads(entries) if "plotly.min.js" in e["name"]]
    assert sizes == [0]  # from the browser's cache


def test_deep_link_below_a_base_path(
    serve: Callable[..., str], open_page: Opener, tmp_path: Path
) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "second.py").write_text(SECOND, encoding="utf-8")
    url = serve(ONCE, "--server.baseUrlPath=lab/nan", "--client.showSidebarNavigation=true")
    page = open_page(f"{url}second")  # the first request of a fresh server
    ready(page)
    assert page.locator("[role=img][aria-label='One bar']").count() == 1
    page.locator("[data-testid=stSidebarNavLink]").first.click()
    page.wait_for_selector("[role=img][aria-label='Two bars'] .main-svg")


def test_a_script_that_does_not_load_is_named(serve: Callable[..., str], open_page: Opener) -> None:
    page = open_page()
    page.route("**/plotly.min.js*", lambda route: route.abort())
    page.goto(serve(ONCE))
    note = page.get_by_role("alert").filter(has_text="The chart cannot be drawn")
    note.wait_for()
    assert "reload the page" in note.inner_text()


def test_it_follows_the_theme_without_a_new_mount(
    serve: Callable[..., str], open_page: Opener
) -> None:
    page = open_page(serve(ONCE), color_scheme="light")
    ready(page)
    page.evaluate("() => { window.host = document.querySelector('.js-plotly-plot'); }")
    ink = "() => getComputedStyle(document.querySelector('.xtick text')).fill"
    light = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        f"(light) => ({ink})() !== light && host.isConnected && host.matches('.js-plotly-plot')",
        arg=light,
    )
    red, green, blue = map(int, re.findall(r"\d+", page.evaluate(ink))[:3])
    assert min(red, green, blue) > 180  # light text on a dark page
    page.reload()  # the server learns of a changed theme at the next run
    page.get_by_text("dark True").wait_for()


def test_on_a_phone_it_fits_the_page(serve: Callable[..., str], open_page: Opener) -> None:
    phone = {"width": 390, "height": 800}
    page = open_page(serve(ONCE), viewport=phone, has_touch=True, is_mobile=True)
    ready(page)
    box = page.locator(".js-plotly-plot .main-svg").first.bounding_box()
    assert 250 < box["width"] <= 390
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_function("() => document.querySelector('.main-svg').clientWidth > 500")


def test_health_heatmap_tells_the_counts(serve: Callable[..., str], open_page: Opener) -> None:
    page = open_page(serve(HEALTH))
    ready(page)
    box = page.locator(".nsewdrag").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.95, box["y"] + 10)  # encoder.Wz, last column
    page.wait_for_selector(".hoverlayer .hovertext")
    text = page.locator(".hoverlayer").first.text_content()
    assert "encoder.Wz" in text
    assert "steps 120 to 123, worst at 123" in text
    assert "NaN 7, +Inf 0, −Inf 0 of 12" in text
    assert "largest finite about 2e+5, norm about 4e+5" in text
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] - 10)  # by, first
    page.wait_for_function(
        "() => document.querySelector('.hoverlayer').textContent.includes('zero 2, subnormal 0')"
    )
    assert (
        "largest finite about 0, norm about 0" in page.locator(".hoverlayer").first.text_content()
    )
