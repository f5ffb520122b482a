"""The diagnosis card as a person meets it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from .figures import click_point

Open = Callable[..., Page]


@pytest.fixture
def lab(application: str, open_page: Open) -> Callable[[str], Page]:
    """`lab(query)` opens the laboratory and waits for its run."""

    def open_(query: str) -> Page:
        page = open_page(f"{application}laboratory?{query}")
        expect(page.get_by_text("Finite parameters")).to_be_visible(timeout=60_000)
        return page

    return open_


def start(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Start")).click()


def test_the_card_comes_by_itself_with_line_numbers_and_reach(lab: Callable[[str], Page]) -> None:
    page = lab("scenario=balanced_loss")
    start(page)
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("received exactly 0")
    for words in ("log-of-zero", "masked-branch", "lost-epsilon", "Reaches 6", "balanced_loss.py"):
        expect(main).to_contain_text(words)
    expect(main.locator("code").filter(has_text="→").first).to_contain_text("tf.math.log(1 - p)")


def test_the_path_shows_the_numbers_of_the_stop_that_is_clicked(
    lab: Callable[[str], Page],
) -> None:
    page = lab("scenario=balanced_loss")
    start(page)
    page.get_by_role("tab", name="Path").click()
    picture = page.get_by_role("img", name=re.compile("^Path from Log"))
    expect(picture).to_contain_text("SigmoidGrad")
    expect(picture).to_contain_text("6 reached")
    expect(page.get_by_text("forward; click another stop")).to_be_visible()
    click_point(picture, trace=0, point=1)
    expect(page.get_by_text("backward; click another stop")).to_be_visible()


def test_the_recurrence_shows_where_it_leaves_the_dtype(lab: Callable[[str], Page]) -> None:
    page = lab("scenario=seq2seq")
    start(page)
    page.get_by_role("tab", name="Through time").click(timeout=60_000)
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text(re.compile(r"leaves float32 at encoder step \d+"))
    expect(main).to_contain_text("the decoder is passed first and stays finite")
    expect(main).to_contain_text("backprop-explosion")


def test_every_kept_bad_step_has_its_own_diagnosis(lab: Callable[[str], Page]) -> None:
    page = lab("scenario=basis_fit&on_bad=skip")
    start(page)
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(re.compile(r"[\d,]{2,}"))
    page.get_by_role("button", name=re.compile("^Pause")).click()
    steps: Any = page.get_by_label("Step", exact=True)
    expect(steps).to_have_value("of step 0")
    steps.click()
    page.get_by_role("option", name="of step 3", exact=True).click()
    expect(steps).to_have_value("of step 3")
    expect(page.get_by_test_id("stMain")).to_contain_text("power-of-zero")


def test_a_healthy_step_can_be_examined_and_raises_no_alarm(lab: Callable[[str], Page]) -> None:
    page = lab("scenario=balanced_loss&preset=mended")
    page.get_by_role("button", name="Examine the next step").click()
    expect(page.get_by_test_id("stMain")).to_contain_text(re.compile("finite", re.IGNORECASE))
    expect(page.get_by_text("of step 0")).to_be_visible()
