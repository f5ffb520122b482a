"""Clicks in a Plotly figure."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, expect


def click_at(figure: Locator, across: float, up: float) -> None:
    """Click a place in the axes, as shares of their width and height from the lower left."""
    _click(figure, lambda box: {"x": box["width"] * across, "y": box["height"] * (1 - up)})


def click_point(figure: Locator, trace: int, point: int) -> None:
    """Click a point of a scatter trace."""
    marker = figure.locator(".scatterlayer .trace").nth(trace).locator(".points path").nth(point)

    def place(axes: Any) -> Any:
        box = marker.bounding_box()
        assert box
        return {
            "x": box["x"] + box["width"] / 2 - axes["x"],
            "y": box["y"] + box["height"] / 2 - axes["y"],
        }

    _click(figure, place)


def _click(figure: Locator, place: Any) -> None:
    """The layer over the axes takes the clicks; Playwright waits until it stands still."""
    expect(figure).not_to_have_attribute("aria-busy", "true")
    axes = figure.locator(".nsewdrag").first
    axes.scroll_into_view_if_needed()
    box = axes.bounding_box()
    assert box
    axes.click(position=place(box))
