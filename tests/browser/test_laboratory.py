"""The laboratory as a person uses it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from models.scenarios import scenario
from models.training.trainer import Trainer

from .figures import click_at

Open = Callable[..., Page]


def metric(page: Page, label: str) -> Any:
    """Locator of the value of one number in the status line."""
    tile = page.get_by_test_id("stMetric").filter(has=page.get_by_text(label, exact=True))
    return tile.get_by_test_id("stMetricValue")


def number(page: Page, label: str) -> int:
    return int(metric(page, label).inner_text().replace(",", ""))


def wait_for_step(page: Page, least: int) -> None:
    page.wait_for_function(
        """least => [...document.querySelectorAll('[data-testid=stMetric]')].some(tile =>
            tile.innerText.startsWith('Step\\n')
            && Number(tile.innerText.split('\\n').at(-1).replaceAll(',', '')) >= least)""",
        arg=least,
    )


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=re.compile(f"^{name}")).click()


def wait_until_built(page: Page) -> None:
    expect(metric(page, "Step")).to_be_visible(timeout=60_000)


def badge(page: Page, words: str) -> None:
    expect(page.locator(".stMarkdownBadge", has_text=words)).to_be_visible(timeout=30_000)


@pytest.fixture
def lab(application: str, open_page: Open) -> Callable[..., Page]:
    """`lab(query)` opens the laboratory, in a browser of its own, and waits for its run."""

    def open_(query: str, **context: Any) -> Page:
        page = open_page(f"{application}laboratory?{query}", **context)
        wait_until_built(page)
        return page

    return open_


def test_a_deep_link_is_the_first_request_and_training_breaks_where_it_does_headless(
    lab: Callable[..., Page],
) -> None:
    page = lab("scenario=balanced_loss")
    press(page, "Start")
    badge(page, "Halted before a non-finite step")
    balanced = scenario("balanced_loss")
    config = balanced.config("as-posted")
    headless = Trainer(balanced, config, balanced.load(config, None))
    while not headless.halted:
        headless.advance(50)
    assert number(page, "First bad step") == headless.first_bad_step
    assert metric(page, "Finite parameters").inner_text() == "0 of 6"
    assert metric(page, "Loss").inner_text() == f"{headless.last_rows.loss[0]:.5g}"  # type: ignore[union-attr]


def test_pause_step_and_a_knob_that_acts_while_it_trains(lab: Callable[..., Page]) -> None:
    page = lab("scenario=balanced_loss&preset=mended&from_logits=off&epsilon=1e-7")
    press(page, "Start")
    wait_for_step(page, 200)
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press("ArrowRight")
    expect(page).to_have_url(re.compile("epsilon=1.5e-7"))
    before = number(page, "Step")
    assert before >= 200, "a numeric knob restarts nothing"
    wait_for_step(page, before + 100)
    press(page, "Pause")
    badge(page, "Paused")
    page.wait_for_timeout(1000)
    paused = number(page, "Step")
    press(page, "Step")
    wait_for_step(page, paused + 1)
    page.wait_for_timeout(1000)
    assert number(page, "Step") == paused + 1


def test_a_structural_knob_says_that_the_run_restarts(lab: Callable[..., Page]) -> None:
    page = lab("scenario=balanced_loss&preset=mended")
    press(page, "Start")
    wait_for_step(page, 300)
    page.get_by_test_id("stSidebar").get_by_text("Loss from logits").click()
    expect(page.get_by_text("Run restarted: Loss from logits changed.")).to_be_visible()
    expect(page).to_have_url(re.compile("from_logits=off"))


def test_a_reload_takes_the_same_run_up_again(lab: Callable[..., Page]) -> None:
    page = lab("scenario=balanced_loss&preset=mended&learning_rate=0.1&seed=5")
    press(page, "Start")
    wait_for_step(page, 500)
    press(page, "Pause")
    badge(page, "Paused")
    page.wait_for_timeout(800)
    step = number(page, "Step")
    page.reload()
    wait_until_built(page)
    assert number(page, "Step") == step
    assert "seed=5" in page.url


def test_a_run_that_trains_goes_on_after_a_reload(lab: Callable[..., Page]) -> None:
    page = lab("scenario=balanced_loss&preset=mended")
    press(page, "Start")
    wait_for_step(page, 500)
    page.reload()
    wait_until_built(page)
    step = number(page, "Step")
    assert step >= 500
    wait_for_step(page, step + 100)


def test_a_click_on_a_cell_shows_its_entries(lab: Callable[..., Page]) -> None:
    page = lab("scenario=basis_fit")
    press(page, "Start")
    badge(page, "Halted before a non-finite step")
    plot = page.get_by_role("img", name=re.compile("^Gradient health"))
    click_at(plot, 0.5, 0.99)
    entries = page.get_by_role("img", name=re.compile("^Entries of the gradient of attention.Wq"))
    expect(entries).to_be_visible()
    expect(page.get_by_label("at", exact=True)).to_have_value("bad step 0")


def test_two_browsers_do_not_see_each_other(lab: Callable[..., Page]) -> None:
    first = lab("scenario=balanced_loss&preset=mended&seed=1")
    second = lab("scenario=balanced_loss&preset=mended&seed=2&learning_rate=0.01")
    press(first, "Start")
    press(second, "Start")
    for page in (first, second):
        wait_for_step(page, 300)
    assert "seed=1" in first.url
    assert "learning_rate" not in first.url
    press(first, "Pause")
    badge(first, "Paused")
    first.wait_for_timeout(800)
    stopped, going = number(first, "Step"), number(second, "Step")
    wait_for_step(second, going + 200)
    assert number(first, "Step") == stopped


def test_good_and_bad_files(lab: Callable[..., Page]) -> None:
    page = lab("scenario=balanced_loss&preset=mended")
    press(page, "Start")
    wait_for_step(page, 100)
    upload = page.locator("input[type=file]")
    one_class = "a,b,label\n" + "\n".join(f"{i},{i * i},1" for i in range(40))
    upload.set_input_files(
        [{"name": "one.csv", "mimeType": "text/csv", "buffer": one_class.encode()}]
    )
    alert = page.get_by_test_id("stSidebar").get_by_role("alert")
    expect(alert).to_contain_text("class")
    before = number(page, "Step")
    wait_for_step(page, before + 100)  # the run goes on untouched
    two_classes = "a,b,label\n" + "\n".join(f"{i},{i * i % 7},{i % 2}" for i in range(40))
    upload.set_input_files(
        [{"name": "two.csv", "mimeType": "text/csv", "buffer": two_classes.encode()}]
    )
    expect(alert).to_have_count(0)
    expect(page.get_by_text("Run restarted: data changed.")).to_be_visible()
    expect(page.get_by_text("Back to the scenario's own data")).to_be_visible()


def test_a_formula_that_cannot_be_used_leaves_the_run_alone(lab: Callable[..., Page]) -> None:
    page = lab("scenario=basis_fit&preset=mended")
    press(page, "Start")
    wait_for_step(page, 20)
    formula = page.get_by_label(re.compile("^g\\(x\\)"))
    for text, words in (("sin(", "cannot be read"), ("1/x", "at x = 0"), ("__import__('os')", "")):
        formula.fill(text)
        formula.press("Enter")
        expect(page.get_by_test_id("stSidebar").get_by_role("alert")).to_contain_text(words)
    before = number(page, "Step")
    wait_for_step(page, before + 20)
    formula.fill("exp(-x)")
    formula.press("Enter")
    expect(page.get_by_text("Run restarted: g(x) changed.")).to_be_visible()


def test_nonsense_in_the_url_is_named_and_the_rest_is_used(lab: Callable[..., Page]) -> None:
    page = lab("scenario=balanced_loss&epsilon=purple&learning_rate=0.01&nonsense=1")
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("“purple” is not a number")
    expect(main).to_contain_text("no knob “nonsense”")
    expect(page).to_have_url(re.compile("learning_rate=0.01"))


def test_back_undoes_a_knob(lab: Callable[..., Page]) -> None:
    page = lab("scenario=balanced_loss&preset=mended&seed=5")
    layer = page.get_by_role("slider", name=re.compile("^Units in layer 2"))
    layer.focus()
    layer.press("ArrowRight")
    expect(page).to_have_url(re.compile("hidden_2=9"))
    page.go_back()
    expect(layer.first).to_have_value("8")  # the new one; the old one goes when the page has run
    expect(page).not_to_have_url(re.compile("hidden_2"))


def test_nothing_is_asked_of_another_machine(application: str, open_page: Open) -> None:
    page = open_page()
    elsewhere: list[str] = []
    page.on("request", lambda r: None if "//localhost" in r.url else elsewhere.append(r.url))
    for path in ("", "laboratory?scenario=basis_fit", "story"):
        page.goto(f"{application}{path}")
        page.wait_for_timeout(2500)
    assert [url for url in elsewhere if url.startswith("http")] == []
