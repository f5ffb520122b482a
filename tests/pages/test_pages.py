"""Every page without a browser: what stands on it, and what it does with bad input."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from models.scenarios import scenarios
from models.training.warm import loading

ROOT = Path(__file__).parents[2]


def test_home_has_a_card_with_its_story_for_every_scenario() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).run()
    assert not page.exception
    assert [card.value for card in page.subheader] == [s.title for s in scenarios().values()]
    text = [markdown.value for markdown in page.markdown]
    assert all(s.story in text for s in scenarios().values())


def test_a_page_leaves_the_kernels_of_compiled_graphs_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loading().join()
    here = importlib.import_module("tensorflow.python.eager.context").context()
    cleared: list[bool] = []
    monkeypatch.setattr(here, "clear_kernel_cache", lambda: cleared.append(True))
    AppTest.from_file(str(ROOT / "app.py"), default_timeout=30).run()
    assert not cleared


def opened(path: str, tab: str, query: dict[str, str]) -> Any:
    """A page as a tab sees it after its first run."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    page.switch_page(path)
    page.session_state["tab"] = tab
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


@pytest.fixture
def laboratory() -> Callable[..., Any]:
    """`laboratory(tab, **query)`: the page as that tab sees it, once its run is built."""

    def open_(tab: str, **query: str) -> Any:
        page = opened("pages/laboratory.py", tab, query)
        deadline = time.monotonic() + 60
        while not page.exception and not page.metric and time.monotonic() < deadline:
            time.sleep(0.2)
            page.run()
        assert not page.exception
        return page

    return open_


@pytest.mark.parametrize("name", list(scenarios()))
def test_a_scenario_shows_every_knob_that_matters(
    laboratory: Callable[..., Any], name: str
) -> None:
    page = laboratory(f"all-{name}", scenario=name)
    scenario = scenarios()[name]
    config = scenario.config("as-posted")
    drawn = {
        widget.key.split("/")[1]
        for kind in ("slider", "select_slider", "selectbox", "button_group", "toggle")
        for widget in [*page.get(kind), *page.text_input, *page.number_input]
        if widget.key and widget.key.startswith(f"{name}/")
    }
    assert drawn >= {knob.name for knob in scenario.knobs if knob.matters(config)}


def test_knobs_that_depend_on_another_appear_when_they_matter(
    laboratory: Callable[..., Any],
) -> None:
    page = laboratory("dependent", scenario="basis_fit")
    assert not [s for s in page.slider if "Exponent bounds" in s.label]
    page = laboratory("dependent2", scenario="basis_fit", exponents="bounded")
    bounds = next(s for s in page.slider if "Exponent bounds" in s.label)
    assert bounds.value == (0.1, 2.0)


def test_the_url_restores_the_knobs_and_follows_them(laboratory: Callable[..., Any]) -> None:
    page = laboratory("url", scenario="balanced_loss", epsilon="6.1e-8", hidden_1="32")
    epsilon = next(s for s in page.select_slider if s.label.startswith("ε"))
    assert epsilon.value == 6.1e-8
    epsilon.set_value(1e-7).run()
    query = {k: v if isinstance(v, str) else v[0] for k, v in page.query_params.items()}
    assert query == {
        "scenario": "balanced_loss",
        "preset": "as-posted",
        "epsilon": "1e-7",
        "hidden_1": "32",
    }


def test_a_late_request_with_the_old_address_changes_nothing(
    laboratory: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = laboratory("late", scenario="balanced_loss", preset="mended", hidden_1="32")
    before = page.session_state["settings/"]["balanced_loss"]
    rows = "".join(f"{i},{i * i % 7},{i % 2}\n" for i in range(40))
    before.content = f"a,b,label\n{rows}".encode()
    page.run()
    old = dict(page.query_params)
    next(s for s in page.slider if s.label.startswith("Units in layer 1")).set_value(8).run()
    page.query_params.clear()
    for name, value in old.items():
        page.query_params[name] = value
    page.run()
    assert page.session_state["settings/"]["balanced_loss"] is before, "its file is kept"

    monkeypatch.setattr("components.settings.SECONDS_TO_HEAR", 0.0)
    next(s for s in page.slider if s.label.startswith("Units in layer 2")).set_value(4).run()
    page.query_params["hidden_1"] = "32"  # edited by hand, later
    page.run()
    units = next(s for s in page.slider if s.label.startswith("Units in layer 1"))
    assert units.value == 32


def test_a_preset_turns_every_knob(laboratory: Callable[..., Any]) -> None:
    page = laboratory("preset", scenario="balanced_loss", preset="mended")
    toggles = {t.label.removesuffix(" ↻"): t.value for t in page.toggle}
    assert toggles["Loss from logits"] is True
    assert toggles["Guarded counts"] is True


def test_nonsense_in_the_url_gets_a_notice_each(laboratory: Callable[..., Any]) -> None:
    page = laboratory("nonsense", scenario="balanced_loss", epsilon="7", preset="best", what="1")
    notices = " ".join(w.value for w in page.warning)
    assert "7 is out of range" in notices
    assert "no preset “best”" in notices
    assert "no knob “what”" in notices


def test_a_formula_from_a_url_that_cannot_be_used_gives_way_to_the_default(
    laboratory: Callable[..., Any],
) -> None:
    page = laboratory("formula", scenario="basis_fit", formula="1/x")
    assert "at x = 0" in " ".join(w.value for w in page.warning)
    assert next(t for t in page.text_input if t.label.startswith("g(x)")).value == "sin(3*x) + x^2"


@pytest.fixture
def stability_map() -> Callable[..., Any]:
    """`stability_map(tab, **query)`: the page as that tab sees it, before anything is computed."""

    def open_(tab: str, **query: str) -> Any:
        page = opened("pages/stability_map.py", tab, query)
        assert not page.exception
        return page

    return open_


def query_of(page: Any) -> dict[str, str]:
    return {k: v if isinstance(v, str) else v[0] for k, v in page.query_params.items()}


@pytest.mark.parametrize("name", list(scenarios()))
def test_every_scenario_has_a_first_map_that_can_be_computed(
    stability_map: Callable[..., Any], name: str
) -> None:
    page = stability_map(f"map-{name}", scenario=name)
    start = next(b for b in page.button if b.label == "Compute the map")
    assert not start.disabled
    assert not page.error
    query = query_of(page)
    assert query["x"].partition("=")[0] != query["y"].partition("=")[0]
    again = stability_map(f"map2-{name}", **query)
    assert query_of(again) == query, "the link restores the page"
    assert not again.warning


def test_an_axis_that_cannot_be_used_is_named_and_nothing_starts(
    stability_map: Callable[..., Any],
) -> None:
    page = stability_map("map-bad", scenario="balanced_loss")
    next(t for t in page.text_input if t.label == "From").set_value("1e9").run()
    assert "out of range" in " ".join(e.value for e in page.error)
    assert next(b for b in page.button if b.label == "Compute the map").disabled


def test_nonsense_in_a_link_to_a_map_gets_a_notice_each(
    stability_map: Callable[..., Any],
) -> None:
    page = stability_map(
        "map-nonsense", scenario="balanced_loss", x="purple=1:2", steps="0", view="upside-down"
    )
    notices = " ".join(w.value for w in page.warning)
    assert "no knob “purple”" in notices
    assert "0 is out of range" in notices
    assert "no view “upside-down”" in notices


def test_an_unknown_engine_is_a_sentence(stability_map: Callable[..., Any]) -> None:
    page = stability_map("map-engine", scenario="balanced_loss", engine="dask://")
    next(b for b in page.button if b.label == "Compute the map").click().run()
    assert "dask://HOST:PORT" in " ".join(e.value for e in page.error)
