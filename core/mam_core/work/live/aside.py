"""Where a worker's own lines go while an agent has its terminal: into a file of the session.

They are shown, too, while no agent is on the screen; over one they never are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from mam_core.disk import Folder, write_all

LOG = "worker.log"
#: Half of what is kept: a log that is longer becomes the earlier one.
_CAP_BYTES = 1024 * 1024


class Aside:
    """A stream for `Screen` and for warnings. Writing never fails: there is nobody to tell."""

    encoding = "utf-8"

    def __init__(self, folder: Folder, is_taken: Callable[[], bool]) -> None:
        self._folder = folder
        self._is_taken = is_taken

    def write(self, text: str) -> int:
        with suppress(OSError):
            fd = self._folder.open_in_place(LOG, os.O_WRONLY | os.O_APPEND)
            try:
                write_all(fd, text.encode("utf-8", "backslashreplace"))
                is_long = os.fstat(fd).st_size > _CAP_BYTES
            finally:
                os.close(fd)
            if is_long:
                self._folder.replace(LOG, f"{LOG}.1")
        if not self._is_taken():
            with suppress(OSError, ValueError):
                sys.stdout.write(text)
                sys.stdout.flush()
        return len(text)

    def fileno(self) -> int:
        raise OSError("what is written here goes to two places")

    def flush(self) -> None:
        """Nothing is held back."""
