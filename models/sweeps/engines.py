"""Where parts are computed: on this machine, or on a Dask cluster.

An engine takes parts as an executor of `concurrent.futures` takes calls. A part that was lost with
its worker is computed again; one that cannot be computed has its reason as the future's exception.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from ..errors import BadInput
from ..training.computing import parts_at_once, set_up_tensorflow
from .members import Watch
from .part import run_part
from .plan import Part
from .results import RunResult

DASK = "dask://"
SECONDS_TO_CONNECT = 10

Results = Future[list[RunResult]]


class Engine(Protocol):
    """`parallel`: how many parts it works on at once."""

    @property
    def parallel(self) -> int: ...

    def submit(self, part: Part, watch: Watch) -> Results:
        """The results of a part; `watch` is served where the engine can reach it."""

    def problem(self) -> str:
        """Why nothing can be expected of it any more; "" while it works."""

    def close(self) -> None:
        """Give back what it holds; parts under way are given up."""


class LocalEngine:
    """Threads of this process, as many as `parts_at_once` has it."""

    def __init__(self) -> None:
        self.parallel = parts_at_once()
        self._threads = ThreadPoolExecutor(self.parallel, thread_name_prefix="nanatomy-sweep")

    def submit(self, part: Part, watch: Watch) -> Results:
        return self._threads.submit(run_part, part, watch)

    def problem(self) -> str:
        return ""

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class DaskEngine:
    """The workers of an existing Dask cluster; each needs this package and TensorFlow."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = _connect(address)
        self._executor = self._client.get_executor(pure=False, retries=0)

    @property
    def parallel(self) -> int:
        """One part for each thread of a worker, and one that waits so that no thread ever does."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return 2 * max(1, sum(worker["nthreads"] for worker in workers))

    def submit(self, part: Part, watch: Watch) -> Results:
        return self._executor.submit(run_on_worker, part)

    def problem(self) -> str:
        if self._client.status == "running":
            return ""
        return f"The Dask scheduler at {self.address} does not answer any more."

    def close(self) -> None:
        self._client.close(timeout=SECONDS_TO_CONNECT)


def run_on_worker(part: Part) -> list[RunResult]:
    """`run_part` in a process of its own."""
    set_up_tensorflow()
    return run_part(part)


def _connect(address: str) -> Any:
    try:
        from distributed import Client  # noqa: PLC0415  optional
    except ImportError:
        raise BadInput(
            "A Dask cluster needs the package distributed; install it with "
            "“pip install distributed”, or use the engine local.",
            field="engine",
        ) from None
    try:
        connect: Any = Client
        return connect(
            f"tcp://{address}", timeout=SECONDS_TO_CONNECT, set_as_default=False, name="nanatomy"
        )
    except (OSError, ValueError) as error:
        raise BadInput(
            f"No Dask scheduler answers at {address} ({_first_line(error)}); start one with "
            "“dask scheduler”, or use the engine local.",
            field="engine",
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def engine(text: str) -> Engine:
    """The engine that `local` or `dask://HOST:PORT` names; BadInput where there is none."""
    if text == "local":
        return LocalEngine()
    if text.startswith(DASK) and text != DASK:
        return DaskEngine(text.removeprefix(DASK))
    raise BadInput(f"“{text}” is no engine; give local or dask://HOST:PORT.", field="engine")
