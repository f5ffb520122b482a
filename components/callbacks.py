"""Callbacks of widgets that are never cut short."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from streamlit.runtime.scriptrunner import RerunException

P = ParamSpec("P")


def uncut(callback: Callable[P, None]) -> Callable[P, None]:
    """For a callback that reads or writes Streamlit's state (session, URL).

    Where another rerun is waiting, Streamlit raises it at the callback's first touch of the state
    and drops the rest: a file that was brought, a choice that was made would be lost. Here the
    callback is run from its start again, to its end, before that rerun goes on. So it must bear to
    be begun twice, and may not ask for a rerun itself.
    """

    @wraps(callback)
    def whole(*args: P.args, **kwargs: P.kwargs) -> None:
        waiting = None
        while True:
            try:
                callback(*args, **kwargs)
                break
            except RerunException as rerun:
                waiting = rerun
        if waiting is not None:
            raise waiting

    return whole
