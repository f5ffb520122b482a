"""Find the boundary: the smallest or largest value of a knob that stays finite, and its curve."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from models.errors import BadInput
from models.scenarios.knobs import Config, KnobValue, Number, format_number
from models.sweeps.axes import NO_AXIS, Axis
from models.sweeps.boundary import in_words
from models.sweeps.boundary_curve import BoundaryCurve, Point, Search, spread
from models.sweeps.work import MapWork

from . import map_cell
from .figures.map_overlays import Spot, Spots
from .map_settings import SEEDS, STEPS, MapSettings


def show(settings: MapSettings, work: MapWork) -> None:
    form(settings, work)
    curve = work.boundary
    if curve is None:
        return
    if curve.running:
        share, told = curve.progress
        st.progress(share, told)
    elif curve.status == "failed":
        st.error(curve.message, icon=":material/error:")
    elif curve.status == "stopped":
        st.caption("Stopped; what was found is kept.")
    answer(curve)


@dataclass
class Asked:
    """What stands in the form."""

    knob: str
    low: str
    high: str
    at: Config
    steps: int
    seeds: int
    along: bool


def form(settings: MapSettings, work: MapWork) -> None:
    sweep, name = work.run.sweep, settings.scenario.name
    knobs = [k for k in settings.scenario.knobs if isinstance(k, Number) and k.name not in NO_AXIS]
    first = next((a.knob for a in sweep.axes if a.knob in {k.name for k in knobs}), knobs[0].name)
    key = f"{name}/boundary"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        labels = {knob.name: f"{knob.label} ({knob.name})" for knob in knobs}
        chosen = st.selectbox(
            "Boundary of",
            list(labels),
            index=list(labels).index(first),
            format_func=labels.__getitem__,
            key=f"{key}/knob",
            width=230,
        )
        low, high = _ends(settings, sweep.axes, chosen)
        asked = Asked(
            chosen,
            st.text_input("From", low, key=f"{key}/low/{chosen}", width=95),
            st.text_input("To", high, key=f"{key}/high/{chosen}", width=95),
            {},
            _whole("Steps", int(STEPS.high), sweep.steps, f"{key}/steps"),
            _whole("Seeds", int(SEEDS.high), sweep.seeds, f"{key}/seeds"),
            along=False,
        )
    others = [axis for axis in sweep.axes if axis.knob != chosen]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for axis in others:
            asked.at[axis.knob] = _at(settings, axis, sweep.config[axis.knob], key)
        on_map = chosen in {axis.knob for axis in sweep.axes[:2]}
        other = next((axis for axis in sweep.axes[:2] if axis.knob != chosen), None)
        if on_map and other is not None:
            count = len(spread(other.values))
            asked.along = st.toggle(
                f"Curve: {count} points along {other.knob}",
                value=True,
                key=f"{key}/along",
                help="Searches at each of these values, too; every point of the curve is measured.",
            )
        press(settings, work, asked, other)


def _whole(label: str, most: int, value: int, key: str) -> int:
    return int(st.number_input(label, 1, most, value, key=key, width=110))


def press(settings: MapSettings, work: MapWork, asked: Asked, other: Axis | None) -> None:
    if work.boundary is not None and work.boundary.running:
        st.button(
            "Stop", icon=":material/stop:", on_click=work.boundary.stop, key="map/boundary/stop"
        )
        return
    if st.button("Find the boundary", icon=":material/border_outer:", key="map/boundary/start"):
        try:
            begin(settings, work, asked, other)
        except BadInput as problem:
            st.error(problem.sentence, icon=":material/error:")
        else:
            st.rerun()  # the page has to refresh while it searches


def begin(settings: MapSettings, work: MapWork, asked: Asked, other: Axis | None) -> None:
    sweep = work.run.sweep
    along = asked.along and other is not None
    work.boundary = BoundaryCurve(
        Search(
            scenario=sweep.scenario,
            config=sweep.config | asked.at,
            knob=asked.knob,
            low=_end(settings, asked.knob, asked.low),
            high=_end(settings, asked.knob, asked.high),
            steps=asked.steps,
            seeds=asked.seeds,
            other=other.knob if along and other else "",
            values=spread(other.values) if along and other else (),
            content=sweep.content,
        )
    )


def _end(settings: MapSettings, knob: str, text: str) -> float:
    """May lie beyond the knob's own ends, as a boundary may."""
    try:
        return float(text)
    except ValueError:
        label = settings.scenario.knob(knob).label
        raise BadInput(f"{label}: “{text}” is not a number; give one such as 1e-9.") from None


def _ends(settings: MapSettings, axes: tuple[Axis, ...], name: str) -> tuple[str, str]:
    knob = settings.scenario.knob(name)
    assert isinstance(knob, Number)
    low, high = knob.low, knob.high
    axis = next((axis for axis in axes if axis.knob == name), None)
    if axis is not None and len(axis.values) > 1:
        numbers = [float(v) for v in axis.values if isinstance(v, (int, float))]
        low, high = min(numbers), max(numbers)
    return format_number(low), format_number(high)


def _at(settings: MapSettings, axis: Axis, value: KnobValue, key: str) -> KnobValue:
    """Where the other axes stand for the answer: at the knob's value, or its nearest neighbour."""
    options = list(axis.values)
    nearest = value if value in options else options[len(options) // 2]
    if isinstance(value, (int, float)) and value not in options:
        options = sorted({*options, value})
        nearest = value
    if len(options) == 1:
        return options[0]
    chosen: KnobValue = st.select_slider(
        f"at {settings.scenario.knob(axis.knob).label}",
        options,
        value=nearest,
        format_func=map_cell.in_words,
        key=f"{key}/at/{axis.knob}/{len(options)}",
        width=240,
    )
    return chosen


def answer(curve: BoundaryCurve) -> None:
    if curve.answer is None:
        return
    others = [name for name in ("learning_rate", curve.search.other) if name]
    sentence, *more = in_words(
        curve.answer, curve.search.config, tuple(dict.fromkeys(others))
    ).splitlines()
    st.code(sentence, language=None, wrap_lines=True)
    for line in more:
        st.caption(f"It {line}; found by bisection between the two.")
    if curve.search.other:
        found = [p for p in curve.points if p.found and p.found.boundary is not None]
        none = len(curve.points) - len(found)
        told = f"The curve on the map has {len(found)} measured points"
        st.caption(f"{told}; {none} more have no boundary in this range." if none else f"{told}.")


def overlay(work: MapWork) -> Spots:
    """The points found so far, joined in the order of the other knob."""
    knobs = [axis.knob for axis in work.run.sweep.axes[:2]]
    curve = work.boundary
    spots: list[Spot] = []
    if curve is not None and curve.search.knob in knobs:
        points = curve.points
        if not points and curve.answer is not None:
            points = (Point({}, curve.answer),)
        measured = [p for p in points if p.found is not None and p.found.boundary is not None]
        if all(isinstance(p.settings.get(curve.search.other, 0), (int, float)) for p in measured):
            measured.sort(key=lambda p: p.settings.get(curve.search.other, 0))
        spots = [_spot(curve, point) for point in measured]
    marker = {"symbol": "diamond", "size": 10}
    return Spots("boundary, measured", spots, knobs, marker, joined=len(spots) > 1)


def _spot(curve: BoundaryCurve, point: Point) -> Spot:
    assert point.found is not None
    assert point.found.boundary is not None
    values = curve.search.config | point.settings | {curve.search.knob: point.found.boundary}
    at = curve.search.other
    told = in_words(point.found, values, (at,) if at else ("learning_rate",))
    return Spot(values, told.replace("\n", "<br>"))
