"""Knobs: text and values are each other's inverse; what does not fit is refused in a sentence."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from models.errors import BadInput
from models.scenarios import scenarios
from models.scenarios.knobs import (
    GROUPS,
    AnyKnob,
    Choice,
    Interval,
    Number,
    Text,
    Toggle,
    format_number,
)

EVERY_KNOB = [
    pytest.param(knob, id=f"{scenario.name}-{knob.name}")
    for scenario in scenarios().values()
    for knob in scenario.knobs
]


def values(knob: AnyKnob) -> st.SearchStrategy[Any]:
    match knob:
        case Number(integer=True):
            return st.integers(int(knob.low), int(knob.high))
        case Number():
            return st.floats(knob.low, knob.high)
        case Interval():
            ends = st.floats(knob.low, knob.high)
            return st.tuples(ends, ends).filter(lambda pair: pair[0] < pair[1])
        case Choice():
            return st.sampled_from(list(knob.options))
        case Toggle():
            return st.booleans()
        case Text():
            texts = st.text(min_size=1, max_size=knob.longest).map(str.strip)
            return texts.filter(bool)


@pytest.mark.parametrize("knob", EVERY_KNOB)
@given(data=st.data())
def test_text_reads_back_as_the_same_value(knob: AnyKnob, data: st.DataObject) -> None:
    value = data.draw(values(knob))
    read = knob.parse(knob.format(value))
    assert read == value
    assert isinstance(read, type(knob.default)) or isinstance(knob.default, int | float)
    assert knob.check(read) == read


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_formatted_numbers_read_back_exactly(value: float) -> None:
    assert float(format_number(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-7, "1e-7"), (0.05, "0.05"), (100.0, "100"), (1e7, "10000000"), (2.5e-8, "2.5e-8")],
)
def test_numbers_are_written_as_a_person_would(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize("knob", EVERY_KNOB)
def test_a_knob_describes_itself(knob: AnyKnob) -> None:
    assert knob.group in GROUPS
    assert knob.label
    assert knob.help.endswith(".")
    assert knob.name.isidentifier()
    assert knob.check(knob.default) == knob.default


@pytest.mark.parametrize("knob", EVERY_KNOB)
def test_sliders_have_room(knob: AnyKnob) -> None:
    if isinstance(knob, (Number, Interval)):
        assert knob.low < knob.high
        assert math.isfinite(knob.low)
        assert math.isfinite(knob.high)
    if isinstance(knob, Number):
        assert knob.scale in ("linear", "log")
        assert knob.scale == "linear" or knob.low > 0


@pytest.mark.parametrize("knob", EVERY_KNOB)
@given(text=st.text(max_size=30))
def test_any_text_is_read_or_refused_in_a_sentence(knob: AnyKnob, text: str) -> None:
    try:
        read: Any = knob.parse(text)
    except BadInput as error:
        read = error
    if isinstance(read, BadInput):
        assert read.field == knob.name
        assert knob.label in read.sentence
        assert read.sentence.endswith(".")
    else:
        assert knob.check(read) == read


@pytest.mark.parametrize("knob", EVERY_KNOB)
@given(value=st.floats())
def test_numbers_out_of_range_are_refused(knob: AnyKnob, value: float) -> None:
    if not isinstance(knob, Number):
        return
    assume(not knob.low <= value <= knob.high)
    with pytest.raises(BadInput, match=r"give a (whole )?number from"):
        knob.parse(repr(value))
    with pytest.raises(BadInput, match=r"give a (whole )?number from"):
        knob.check(value)


@pytest.mark.parametrize("value", [True, "1", None, (1.0, 2.0)])
def test_a_number_is_nothing_else(value: Any) -> None:
    with pytest.raises(BadInput, match="is not a number"):
        Number(name="n", label="N", group="model", help="", default=1, low=0, high=2).check(value)


@pytest.mark.parametrize("text", ["1", "2..1", "1..1", "a..b", "1..2..3", "0..9", "nan..1", ""])
def test_intervals_that_do_not_fit_are_refused(text: str) -> None:
    knob = Interval(name="i", label="I", group="model", help="", default=(0, 1), low=0, high=5)
    with pytest.raises(BadInput, match=r"low\.\.high"):
        knob.parse(text)
