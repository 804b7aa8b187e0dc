"""The registry folder, watched: which records changed, within milliseconds.

Only the names of records count; temp files, locks and the folders of our own
are noise. A folder that is removed or replaced takes its watch with it, and the
kernel drops what is not fetched in time; so the folder's identity is looked at
twice a second, and whoever might have missed something asks for a full look.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from mam_core.disk import explain
from mam_core.events.lookout import Lookout
from mam_core.pace import paced, paced_retry

DEBOUNCE_MS = 100
STEP_MS = 10
_LOOK_SEC = 0.5
_ABSENT_SEC = 0.25

#: The kernel keeps 16,384 notes at a time, six or so for each replaced file. After a burst of this
#: many names some may have been lost: a look at everything costs less than to be wrong.
_BURST = 2_000
#: We were stopped, or the machine slept: the same.
_STALLED_SEC = 2.0

_SUFFIX = ".json"


def record_of(name: str) -> str | None:
    """The job whose record a file is; None for a file that is none."""
    is_record = name.endswith(_SUFFIX) and not name.startswith(".")
    return name.removesuffix(_SUFFIX) if is_record else None


class DirectoryWatch(Lookout):
    """Watches one folder."""

    def __init__(
        self,
        path: str,
        wake: Callable[[], None],
        *,
        stem_of: Callable[[str], str | None] = record_of,
    ) -> None:
        """`stem_of` tells what a change of a file means, by its name; None: nothing."""
        super().__init__("mam-directory", wake)
        self.path = path
        self._stem_of = stem_of
        self._noise = 0  #: all names of the batch at hand, also those that mean nothing

    def _look_out(self) -> None:
        while not self._stop.is_set():
            watched = _identity(self.path)
            if watched is None:
                self._see(False, f"{self.path} is not there")
                self._began.set()
                self._stop.wait(paced(_ABSENT_SEC))
                continue
            try:
                self._watch(watched)
            except FileNotFoundError:
                continue
            except (OSError, RuntimeError, ImportError) as problem:
                # No watch to be had: mostly the user's limit. The rescan goes on.
                text = str(explain(problem, self.path)) if isinstance(problem, OSError) else ""
                self._see(False, f"{text or problem}: it is looked at from time to time instead")
                self._began.set()
                self._stop.wait(paced(_STALLED_SEC))

    def _watch(self, watched: tuple[int, int]) -> None:
        from watchfiles import watch

        last = time.monotonic()
        for found in watch(
            self.path,
            watch_filter=lambda _, path: self._is_news(path),
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            rust_timeout=round(1000 * paced_retry(_LOOK_SEC)),
            yield_on_timeout=True,
            recursive=False,
            raise_interrupt=False,
            stop_event=_Stop(self._stop, lambda: self._watching(watched)),
        ):
            now = time.monotonic()
            stalled, last = now - last > _STALLED_SEC, now
            stems = {self._stem_of(os.path.basename(path)) or "" for _, path in found}
            self._note(stems, in_doubt=stalled or self._noise > _BURST)
            self._noise = 0
            if _identity(self.path) != watched:
                self._see(False, f"{self.path} was removed or replaced")
                return

    def _is_news(self, path: str) -> bool:
        self._noise += 1
        return path != self.path and self._stem_of(os.path.basename(path)) is not None

    def _watching(self, watched: tuple[int, int]) -> None:
        """The watch stands: what changes from now on will be seen."""
        if _identity(self.path) == watched:
            self._see(True, f"watching {self.path}")
        self._began.set()


class _Stop:
    """Asked by the watch at every step, first when it stands: so we learn that it does."""

    def __init__(self, stop: threading.Event, stands: Callable[[], None]) -> None:
        self._stop = stop
        self._stands: Callable[[], None] | None = stands

    def is_set(self) -> bool:
        if self._stands is not None:
            stands, self._stands = self._stands, None
            stands()
        return self._stop.is_set()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        state = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return state.st_dev, state.st_ino
