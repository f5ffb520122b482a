"""What is swept over, for how long and where: the controls beside a map."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from models.errors import BadInput
from models.scenarios.knobs import AnyKnob, Choice, Number, Toggle
from models.sweeps.axes import FINEST
from models.sweeps.engines import DASK

from .axis_choice import AxisChoice, candidates, suggested
from .map_settings import AXES, LOCAL, SEEDS, STEPS, MapSettings

TITLES = ("Across", "Up", "Third knob")
NONE = "–"
Places = dict[str, DeltaGenerator]


def show(settings: MapSettings) -> Places:
    """Draw the controls and turn `settings` to what they say; returns places for errors."""
    places: Places = {}
    with st.container(border=True, gap="small"):
        length(settings, places)
        where(settings, places)
    for place, title in enumerate(TITLES[: len(settings.axes) + 1]):
        with st.container(border=True, gap="small"):
            choose_axis(settings, place, title)
            if place < len(settings.axes):
                settings.axes = (
                    *settings.axes[:place],
                    values(settings, place),
                    *settings.axes[place + 1 :],
                )
                places[settings.axes[place].knob] = st.empty()
                idle(settings, place)
    if len(settings.axes) > 1:
        st.button(
            "Swap across and up",
            icon=":material/swap_horiz:",
            type="tertiary",
            on_click=settings.swap,
        )
    return places


def choose_axis(settings: MapSettings, place: int, title: str) -> None:
    scenario = settings.scenario
    taken = {axis.knob for i, axis in enumerate(settings.axes) if i != place}
    labels = {k.name: f"{k.label} ({k.name})" for k in candidates(scenario) if k.name not in taken}
    options = list(labels) if place == 0 and len(settings.axes) == 1 else [NONE, *labels]
    now = settings.axes[place].knob if place < len(settings.axes) else NONE
    name = st.selectbox(
        title,
        options,
        index=options.index(now),
        format_func=lambda name: labels.get(name, "none"),
        key=_key(settings, place, "knob"),
    )
    if name != now:
        settings.put_axis(place, None if name == NONE else suggested(scenario, name))
        st.rerun()


def values(settings: MapSettings, place: int) -> AxisChoice:
    """The widgets of one axis: a range, or a list of values."""
    choice = settings.axes[place]
    knob = settings.scenario.knob(choice.knob)
    if isinstance(knob, Number) and not choice.values:
        return _range(settings, place, choice)
    return choice.with_values(_listed(settings, place, choice, knob))


def _range(settings: MapSettings, place: int, choice: AxisChoice) -> AxisChoice:
    low, high = st.columns(2)
    left, right = st.columns(2, vertical_alignment="center")
    log = right.toggle("log", choice.log, key=_key(settings, place, "log"))
    resolution = left.number_input(
        "Values",
        min_value=2,
        max_value=FINEST,
        value=choice.resolution,
        key=_key(settings, place, "resolution"),
        help=f"How many values, 2 to {FINEST}; a whole-number knob takes each value once.",
    )
    return replace(
        choice,
        low=low.text_input("From", choice.low, key=_key(settings, place, "low")).strip(),
        high=high.text_input("To", choice.high, key=_key(settings, place, "high")).strip(),
        log=log,
        resolution=int(resolution),
    )


def _listed(
    settings: MapSettings, place: int, choice: AxisChoice, knob: AnyKnob
) -> tuple[str, ...]:
    key = _key(settings, place, "values")
    if isinstance(knob, (Choice, Toggle)):
        words = knob.options if isinstance(knob, Choice) else {"off": "off", "on": "on"}
        chosen = st.pills(
            "Values",
            list(words),
            default=list(choice.values),
            selection_mode="multi",
            format_func=lambda value: words[value],
            key=key,
        )
        return tuple(value for value in words if value in chosen)
    text = st.text_input("Values, with commas between", ", ".join(choice.values), key=key)
    return tuple(part.strip() for part in text.split(",") if part.strip())


def idle(settings: MapSettings, place: int) -> None:
    """Says so where the knob has no effect with the others as they stand."""
    knob = settings.scenario.knob(settings.axes[place].knob)
    swept = {axis.knob for axis in settings.axes}
    stopped = [
        settings.scenario.knob(name).label
        for name, values in knob.shown_if.items()
        if settings.config[name] not in values and name not in swept
    ]
    if stopped:
        st.caption(
            f":material/info: {knob.label} has no effect as “{', '.join(stopped)}” stands now."
        )


def length(settings: MapSettings, places: Places) -> None:
    for column, knob in zip(st.columns(2), (STEPS, SEEDS), strict=True):
        value = column.number_input(
            knob.label,
            int(knob.low),
            int(knob.high),
            getattr(settings, knob.name),
            help=knob.help,
            key=_key(settings, 0, knob.name),
        )
        setattr(settings, knob.name, int(value))
    for name in ("steps", "seeds", "axes"):
        places[name] = st.empty()


def where(settings: MapSettings, places: Places) -> None:
    """This computer, or a Dask cluster by its scheduler's address."""
    dask = settings.engine != LOCAL
    name = settings.scenario.name
    chosen = st.segmented_control(
        "Computed on",
        ["local", "dask"],
        default="dask" if dask else "local",
        required=True,
        format_func={"local": "this computer", "dask": "Dask"}.__getitem__,
        key=f"{name}/map/engine",
    )
    settings_address, settings.engine = settings.engine.removeprefix(DASK), LOCAL
    if chosen == "dask":
        known = st.session_state.get(f"{name}/map/scheduler", "")
        address = st.text_input(
            "Scheduler",
            settings_address if dask else known,
            placeholder="10.0.0.1:8786",
            help="HOST:PORT of a running Dask scheduler; see README for how to start one.",
            key=f"{name}/map/address",
        )
        st.session_state[f"{name}/map/scheduler"] = address.strip()
        settings.engine = DASK + address.strip().removeprefix("tcp://")
    places["engine"] = st.empty()


def error(settings: MapSettings) -> BadInput | None:
    """What is wrong with the settings, if anything."""
    try:
        settings.sweep()
    except BadInput as problem:
        return problem
    return None


def _key(settings: MapSettings, place: int, field: str) -> str:
    generation = settings.placed.get(AXES[place], 0)
    return f"{settings.scenario.name}/map/{AXES[place]}{generation}/{field}"
