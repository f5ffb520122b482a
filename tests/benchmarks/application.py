"""How fast the application answers, in a real browser on this machine.

    python tests/benchmarks/application.py

Prints seconds from navigation to the home page's first paint in a fresh server; from the click on
Start to the first column of the heatmap, fresh and warm, for each scenario; the steps a second
beside a refreshing browser as a share of those without one; and how often a browser shows a live
run's news while another one has remedies tried or a map computed.
"""

from __future__ import annotations

import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from models.scenarios import scenario, scenarios  # noqa: E402
from models.training.live import LiveRun  # noqa: E402
from tests.browser.conftest import CHROMIUM_ARGS, running_server  # noqa: E402

SECONDS = 5.0
ROUNDS = 3
STEP = """() => { const tile = [...document.querySelectorAll('[data-testid=stMetric]')]
    .find(tile => tile.innerText.startsWith('Step\\n'))
    return tile ? Number(tile.innerText.split('\\n').at(-1).replaceAll(',', '')) : -1 }"""
DRAWN = """() => document.querySelector('.js-plotly-plot')
    && !document.querySelector('[role=img][aria-busy]')"""
FIRST_COLUMN = """() => {
    const plot = document.querySelector('.js-plotly-plot[aria-label^="Gradient health"]')
    const z = plot?._fullData?.[0]?.z
    return z?.length > 0 && z[0].length > 0 }"""
NEWS = f"""async seconds => {{
    const step = {STEP}
    const [began, moments] = [performance.now(), []]
    let last = step()
    while (performance.now() < began + 1000 * seconds) {{
        await new Promise(done => setTimeout(done, 10))
        if (step() !== last) {{ last = step(); moments.push(performance.now()) }}
    }}
    const between = moments.length - 1
    return between < 1 ? 1000 * seconds : (moments.at(-1) - moments[0]) / between
}}"""


@contextmanager
def server() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(ROOT / "app.py", Path(folder)) as url,
    ):
        yield url


def first_paint(browser: Browser) -> float:
    with server() as url:
        page = browser.new_page()
        began = time.perf_counter()
        page.goto(url)
        page.get_by_role("heading", name=re.compile("gradients")).wait_for()
        return time.perf_counter() - began


def start_to_column(browser: Browser, url: str, name: str, *, warm: bool) -> tuple[float, float]:
    """Seconds from the click on Start to the first column, and to the diagnosis card.

    The click comes as soon as there is a button; on a warm server, once the empty charts are drawn.
    """
    page = browser.new_page()
    page.goto(f"{url}laboratory?scenario={name}")
    start = page.get_by_role("button", name=re.compile("^Start"))
    start.wait_for(timeout=60_000)
    if warm:
        page.wait_for_function(DRAWN, timeout=60_000)
    began = time.perf_counter()
    start.click()
    page.wait_for_function(FIRST_COLUMN, timeout=60_000, polling=20)
    column = time.perf_counter() - began
    page.get_by_text("What to change").first.wait_for(timeout=60_000)
    card = time.perf_counter() - began
    page.close()
    return column, card


def beside_a_browser(browser: Browser) -> float:
    """Steps a second while a browser refreshes every half second, as a share of those of a run
    without one; in turn, because the machine's speed drifts."""
    balanced = scenario("balanced_loss")
    config = balanced.config("mended")
    alone = LiveRun(balanced, config, balanced.load(config, None))
    alone.wait_until_built()
    shares = []
    with server() as url:
        page = browser.new_page()
        page.goto(f"{url}laboratory?scenario=balanced_loss&preset=mended")
        page.get_by_text("Finite parameters").wait_for(timeout=60_000)
        for _ in range(ROUNDS):
            page.get_by_role("button", name=re.compile("^Start")).click()
            watched = rate(lambda: int(page.evaluate(STEP)))
            page.get_by_role("button", name=re.compile("^Pause")).click()
            page.locator(".stMarkdownBadge", has_text="Paused").wait_for()
            alone.start()
            shares.append(watched / rate(lambda: alone.view().step))  # type: ignore[union-attr]
            alone.pause()
    alone.close()
    return statistics.median(shares)


def beside_others(browser: Browser) -> Iterator[tuple[str, float, float]]:
    """Milliseconds between two refreshes of a live run that a browser shows: alone, and beside what
    another browser has computed; two browsers, one server."""
    with server() as url:
        watching, busy = browser.new_page(), browser.new_context().new_page()
        watching.goto(f"{url}laboratory?scenario=balanced_loss&preset=mended")
        start = re.compile("^Start")
        watching.get_by_role("button", name=start).click(timeout=60_000)
        time.sleep(3.0)
        for name in scenarios():
            busy.goto(f"{url}laboratory?scenario={name}")
            busy.get_by_role("button", name=start).click(timeout=60_000)
            busy.get_by_text("What to change").first.wait_for(timeout=60_000)
            alone = watching.evaluate(NEWS, SECONDS)
            busy.get_by_role("button", name="What mends it?").click()
            time.sleep(1.0)
            yield f"remedies of {name}", alone, watching.evaluate(NEWS, SECONDS)
            busy.get_by_role("button", name="Stop", exact=True).click(timeout=60_000)
            busy.get_by_text("Stopped:").wait_for(timeout=60_000)
        busy.goto(f"{url}stability_map?scenario=seq2seq")
        compute = busy.get_by_role("button", name=re.compile("Compute the map"))
        compute.wait_for(timeout=60_000)
        alone = watching.evaluate(NEWS, SECONDS)
        compute.click()
        time.sleep(1.0)
        yield "a map of seq2seq", alone, watching.evaluate(NEWS, SECONDS)


def rate(count: Any) -> float:
    time.sleep(1.0)  # to get going
    before, began = count(), time.perf_counter()
    time.sleep(SECONDS)
    return (count() - before) / (time.perf_counter() - began)


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=CHROMIUM_ARGS
        )
        print(f"home page, first paint in a fresh server   {first_paint(browser):6.2f} s (≤ 2)")
        for name in scenarios():
            with server() as url:
                fresh = start_to_column(browser, url, name, warm=False)
                warm = [start_to_column(browser, url, name, warm=True) for _ in range(3)]
            column, card = (statistics.median(seconds) for seconds in zip(*warm, strict=True))
            print(f"{name:15} start → column, fresh     {fresh[0]:6.2f} s (≤ 4)")
            print(f"{name:15} start → column, warm      {column:6.2f} s (≤ 1.5)")
            print(f"{name:15} start → diagnosis, warm   {card:6.2f} s")
        share = beside_a_browser(browser)
        print(f"training beside a refreshing browser       {share:6.2f} × headless (≥ 0.7)")
        for what, alone, beside in beside_others(browser):
            print(f"refresh every {alone:.0f} ms, beside {what} {beside / alone:6.2f} × (≤ 2)")
        browser.close()


if __name__ == "__main__":
    main()
