"""An attempt's output on disk: all of it up to a cap, and then the newest part of it.

``output.log`` grows to half of the cap and becomes ``output.log.1``; what was
there before is gone, and the next file says how much. A disk that is full stops
the log, never the job.
"""

from __future__ import annotations

import os

from mam_core.audit import warn
from mam_core.disk import Folder, write_all

OUTPUT = "output.log"
EARLIER = "output.log.1"
CAP_BYTES = 64 * 1024 * 1024


class OutputLog:
    """The log of one attempt, in its folder."""

    def __init__(self, folder: Folder, *, cap_bytes: int = CAP_BYTES) -> None:
        self._folder = folder
        self._half = max(1, cap_bytes // 2)
        self._fd = -1
        self._size = 0
        self._has_earlier = False
        self._failing = False
        self.lost_bytes = 0  #: what the cap or the disk took

    def write(self, data: bytes) -> None:
        """Never raises: what cannot be written is counted, and said once."""
        while data:
            part, data = data[: self._half], data[self._half :]
            self._write(part)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> OutputLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        try:
            if self._size and self._size + len(data) > self._half:
                self._turn_over()
            if self._fd < 0:
                self._fd = self._folder.open_in_place(OUTPUT, os.O_WRONLY | os.O_APPEND)
                self._size = os.fstat(self._fd).st_size
            write_all(self._fd, data)
            self._size += len(data)
            self._failing = False
        except OSError as problem:
            self.lost_bytes += len(data)
            if not self._failing:
                self._failing = True
                warn(f"{self._folder.path}/{OUTPUT} misses output: {problem.strerror}")

    def _turn_over(self) -> None:
        self.close()
        if self._has_earlier:
            self.lost_bytes += self._half
        self._folder.replace(OUTPUT, EARLIER)
        self._has_earlier = True
        self._size = 0
        if self.lost_bytes:
            self._fd = self._folder.open_in_place(OUTPUT, os.O_WRONLY | os.O_APPEND)
            note = f"[mam: about {self.lost_bytes} earlier bytes were let go]\n".encode()
            write_all(self._fd, note)
            self._size = len(note)
