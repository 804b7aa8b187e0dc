"""What stands on the pane that a worker lives in: the jobs at hand, for whoever looks from outside.

tmux shows it in its status line, keeps it on the pane of a worker that was killed, and
writes it down with the death. A thread of its own does it, since tmux may be stopped
or wedged, and no job waits for a label.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mam_core.tmux.facts import Hand, PaneLabel, TmuxFailed

#: For the last label, when the worker ends; a pane that keeps an old one harms nobody.
_PARTING_SEC = 2.0


class Placard:
    """Of one pane, for any number of slots. Nothing is started before the first job."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand
        self._change = threading.Condition()
        self._jobs: list[tuple[str, int]] = []
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @contextmanager
    def shows(self, job_id: str, attempt: int) -> Iterator[None]:
        """While the block lasts."""
        with self._change:
            self._jobs.append((job_id, attempt))
            self._start()
            self._change.notify()
        try:
            yield
        finally:
            with self._change:
                self._jobs.remove((job_id, attempt))
                self._change.notify()

    def close(self) -> None:
        with self._change:
            self._is_closed = True
            self._change.notify()
        if self._thread is not None:
            self._thread.join(_PARTING_SEC)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="mam-placard", daemon=True)
            self._thread.start()

    def _keep(self) -> None:
        """Write the newest of what is to be written; what was overtaken never is."""
        written = PaneLabel.of([])
        while True:
            with self._change:
                while (wanted := PaneLabel.of(self._jobs)) == written:
                    if self._is_closed:
                        return
                    self._change.wait()
            written = wanted
            with suppress(TmuxFailed):  # it is too busy, or gone
                self._hand.label(job_id=wanted.job_id, attempt=wanted.attempt)
