"""Callbacks that are not cut short by a waiting rerun."""

from __future__ import annotations

import pytest
from streamlit.runtime.scriptrunner import RerunData, RerunException

from components.callbacks import uncut


def test_a_callback_runs_to_its_end_and_the_waiting_rerun_goes_on() -> None:
    waiting = [RerunException(RerunData(query_string="late"))]
    done: list[str] = []

    @uncut
    def take(file: str) -> None:
        if waiting:  # as Streamlit does at the first touch of its state
            raise waiting.pop()
        done.append(file)

    with pytest.raises(RerunException) as raised:
        take("table.csv")
    assert done == ["table.csv"]
    assert raised.value.rerun_data.query_string == "late"
    take("other.csv")
    assert done == ["table.csv", "other.csv"]
