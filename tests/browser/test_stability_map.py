"""The stability map as a person uses it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from models.scenarios import scenario
from models.training.trainer import Trainer

from .figures import click_at

Open = Callable[..., Page]
SMALL = "x=epsilon%3D1e-12:1e-2:log:8&y=learning_rate%3D1e-1:1:log:8"
FIGURE = re.compile("^Stability map over")


@pytest.fixture
def map_page(application: str, open_page: Open) -> Callable[..., Page]:
    """`map_page(query)` opens the page in a browser of its own."""

    def open_(query: str, **context: Any) -> Page:
        page = open_page(f"{application}stability_map?{query}", **context)
        expect(button(page, "Compute the map")).to_be_enabled(timeout=60_000)
        return page

    return open_


def button(page: Page, name: str) -> Any:
    return page.get_by_role("button", name=re.compile(f"{re.escape(name)}$"))


def known(page: Page) -> int:
    """How many cells the map has."""
    label = page.get_by_role("img", name=FIGURE).get_attribute("aria-label") or ""
    counts = re.findall(r"(\d+) cells finite, (\d+) broken", label)
    return sum(map(int, counts[0])) if counts else 0


def wait_for_cells(page: Page, least: int) -> None:
    page.wait_for_function(
        r"""least => [...document.querySelectorAll('[role=img]')].some(figure => {
            const told = figure.ariaLabel?.match(/(\d+) cells finite, (\d+) broken/)
            return told && Number(told[1]) + Number(told[2]) >= least })""",
        arg=least,
        timeout=90_000,
    )


def complete(page: Page) -> None:
    badge = page.locator(".stMarkdownBadge", has_text="Complete")
    expect(badge).to_be_visible(timeout=90_000)


def first_bad_step(**changes: Any) -> int:
    balanced = scenario("balanced_loss")
    config = balanced.config("as-posted", changes)
    trainer = Trainer(balanced, config, balanced.load(config, None))
    while not trainer.halted:
        trainer.advance(50)
    assert trainer.first_bad_step is not None
    return trainer.first_bad_step


def test_it_fills_stops_resumes_and_a_click_leads_into_that_very_run(
    map_page: Callable[..., Page],
) -> None:
    page = map_page(f"scenario=balanced_loss&{SMALL}&steps=4000")
    button(page, "Compute the map").click()
    wait_for_cells(page, 8)  # those that break early
    button(page, "Stop").click()
    expect(button(page, "Resume")).to_be_enabled(timeout=60_000)
    stopped = known(page)
    assert 8 <= stopped < 64

    page.reload()  # the map is the server's
    wait_for_cells(page, stopped)
    assert "steps=4000" in page.url
    button(page, "Resume").click()
    expect(button(page, "Stop")).to_be_visible()

    click_at(page.get_by_role("img", name=FIGURE), 0.06, 0.94)  # the smallest ε, the largest rate
    step = first_bad_step(epsilon=1e-12, learning_rate=1.0)
    expect(page.get_by_text(re.compile(f"Broke at step {step}$")).last).to_be_visible()
    page.get_by_role("link", name="Open this run").click()
    expect(page.get_by_text("Halted before a non-finite step")).to_be_visible(timeout=60_000)
    expect(page).to_have_url(re.compile(r"laboratory\?.*epsilon=1e-12.*learning_rate=1"))
    tile = page.get_by_test_id("stMetric").filter(has=page.get_by_text("First bad step"))
    expect(tile.get_by_test_id("stMetricValue")).to_have_text(f"{step}")


def test_boundary_optimise_line_and_downloads(
    map_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = map_page(f"scenario=balanced_loss&{SMALL}&steps=60&learning_rate=0.5")
    button(page, "Compute the map").click()
    complete(page)

    page.get_by_text("Boundary", exact=True).click()
    page.get_by_text("Curve:").click()  # the answer alone
    button(page, "Find the boundary").click()
    answer = page.get_by_test_id("stCode")
    expect(answer).to_contain_text("epsilon ≥", timeout=60_000)
    found = float(re.findall(r"≥ (\S+)", answer.inner_text())[0])
    assert found == pytest.approx(2**-25, rel=2e-3), "1 − ε rounds to 1 up to 2^-25"

    page.get_by_text("Optimise", exact=True).click()
    page.get_by_role("spinbutton", name="Trials").fill("16")
    button(page, "Optimise").click()
    expect(page.get_by_text("Best: balanced accuracy")).to_be_visible(timeout=60_000)

    page.get_by_text("Line", exact=True).click()
    expect(page.get_by_text("where the line begins")).to_be_visible()
    click_at(page.get_by_role("img", name=FIGURE), 0.06, 0.06)
    expect(page.get_by_text("where the line ends")).to_be_visible()
    click_at(page.get_by_role("img", name=FIGURE), 0.94, 0.94)
    expect(page.get_by_role("img", name="along a line of 8 cells")).to_be_visible()

    page.get_by_text("Download", exact=True).click()
    for name, ending in (("Cells (CSV)", "csv"), ("Cells (Parquet)", "parquet")):
        with page.expect_download() as started:
            button(page, name).click()
        path = tmp_path / f"cells.{ending}"
        started.value.save_as(path)
        frame = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
        assert len(frame) == 64
        assert set(frame[frame["first_bad_step"].notna()]["mechanism"]) == {"log-of-zero"}
        assert (frame[frame["first_bad_step"].notna()]["epsilon"] <= 2**-25).all()
    for kind, head in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with page.expect_download() as started:
            button(page, f"Picture ({kind})").click()
        path = tmp_path / kind
        started.value.save_as(path)
        assert path.read_bytes().startswith(head)


def test_a_link_restores_the_page_and_nonsense_in_it_is_named(
    map_page: Callable[..., Page],
) -> None:
    page = map_page(
        "scenario=balanced_loss&x=dtype%3Dfloat64,float32&y=epsilon%3Dpurple&steps=0&seeds=2"
        "&view=mechanism&hidden_1=8"
    )
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("“purple” is not a number")
    expect(main).to_contain_text("0 is out of range")
    expect(page.get_by_role("spinbutton", name="Seeds")).to_have_value("2")
    expect(page).to_have_url(re.compile(r"hidden_1=8.*x=dtype%3Dfloat64%2Cfloat32.*seeds=2"))
    steps = page.get_by_role("spinbutton", name="Steps")
    expect(steps).to_have_value("500")
