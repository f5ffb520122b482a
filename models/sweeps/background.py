"""Work that goes on behind a page: in a thread of its own, looked at and stopped by anybody."""

from __future__ import annotations

import threading
import traceback
from typing import Literal

from ..errors import BadInput
from .members import TurnTaking
from .running import reason

Status = Literal["running", "done", "stopped", "failed"]


class Background:
    """Begins when it is made; a subclass says in `work` what is done, and keeps what it finds.

    `message` tells why it failed. Every method may be called from any thread.
    """

    def __init__(self) -> None:
        self.watch = TurnTaking()
        self.status: Status = "running"
        self.message = ""
        self._thread = threading.Thread(
            target=self._guarded, name="nanatomy-background", daemon=True
        )
        self._thread.start()

    @property
    def running(self) -> bool:
        return self.status == "running"

    @property
    def progress(self) -> tuple[float, str]:
        """The share that is done, and where it is in a few words."""
        raise NotImplementedError

    def work(self) -> None:
        """Done in the thread; ends early, or raises InterruptedError, where `watch` is stopped."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop after the burst under way; what was found is kept."""
        self.watch.stopped.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it has come to an end, within so many seconds."""
        self._thread.join(timeout)
        return not self.running

    def _guarded(self) -> None:
        try:
            self.work()
            self.status = "stopped" if self.watch.stopped.is_set() else "done"
        except InterruptedError:
            self.status = "stopped"
        except BadInput as error:
            self.message, self.status = error.sentence, "failed"
        except Exception as error:
            traceback.print_exc()
            self.message, self.status = reason(error), "failed"
