"""What mends it, and the stories, as a person uses them in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

Open = Callable[..., Page]


@pytest.fixture
def broken(application: str, open_page: Open) -> Page:
    """The laboratory with balanced_loss as posted, halted at its bad step."""
    page = open_page(f"{application}laboratory?scenario=balanced_loss&learning_rate=0.5")
    expect(page.get_by_text("Finite parameters")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name=re.compile("^Start")).click()
    expect(page.get_by_text("Halted before a non-finite step")).to_be_visible(timeout=60_000)
    return page


def tried(page: Page, least: int) -> None:
    page.wait_for_function(
        r"""least => { const told = document.body.innerText.match(/(\d+) of \d+ (were )?tried/)
            return told !== null && Number(told[1]) >= least }""",
        arg=least,
        timeout=90_000,
    )


def test_rows_arrive_it_can_be_stopped_and_the_best_is_applied(broken: Page) -> None:
    page = broken
    page.get_by_role("button", name="What mends it?").click()
    tried(page, 2)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text(re.compile(r"Stopped: \d+ of \d+ were tried"))).to_be_visible(
        timeout=60_000
    )
    table = page.get_by_test_id("stDataFrame").last
    table.scroll_into_view_if_needed()
    table.click(position={"x": 18, "y": 35 + 35 + 17})  # the second row's tick box: the best
    apply = page.get_by_role("button", name="Apply")
    expect(page.get_by_test_id("stMain")).to_contain_text("mends.")
    expect(
        page.get_by_role("img", name=re.compile("^Gradient health, As it stands"))
    ).to_be_visible()
    expect(page.get_by_test_id("stMain")).to_contain_text("apart from step")
    apply.click()
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-testid=stMetric]')].some(tile =>
            tile.innerText.startsWith('Step\\n')
            && Number(tile.innerText.split('\\n').at(-1).replaceAll(',', '')) > 200)"""
    )
    assert page.get_by_text("Halted before").count() == 0


def test_a_story_is_told_with_real_runs_and_the_arrow_keys(
    application: str, open_page: Open
) -> None:
    page = open_page(f"{application}story?scenario=balanced_loss")
    expect(page.get_by_role("heading", name="It trains well, until it does not")).to_be_visible()
    expect(page.get_by_text("Halted before a non-finite step")).to_be_visible(timeout=60_000)
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name="One element, one line")).to_be_visible()
    expect(page.get_by_test_id("stMain")).to_contain_text("log-of-zero", timeout=60_000)
    page.get_by_role("button", name=re.compile("^Next")).click()
    expect(page.get_by_role("heading", name="What people advise")).to_be_visible()
    expect(page.get_by_test_id("stDataFrame").last).to_be_visible(timeout=90_000)
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("heading", name="One element, one line")).to_be_visible()
