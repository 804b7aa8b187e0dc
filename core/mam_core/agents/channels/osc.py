"""State reports and titles out of what a program writes to its terminal.

Everything else passes by: this is no terminal. The bytes are cut anywhere and
written by anybody, so what is held back is bounded, and a report that does not
end as it should is dropped.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TITLES = (0, 2)  #: ``ESC ] 0 ; title``: icon and window; 2: the window alone
STATE = 7501  #: ``ESC ] 7501 ; state=working:app=codex``, as codex reports itself

#: Longer ones are none of these; they are passed over without being kept.
MAX_REPORT_BYTES = 4096

_KNOWN = {str(code).encode(): code for code in (*TITLES, STATE)}
_ESC, _BEL = 0x1B, 0x07
#: ESC and BEL may end a report; CAN and SUB break it off.
_ENDS = re.compile(rb"[\x1b\x07\x18\x1a]")


class Report(NamedTuple):
    """One operating system command: its number, and its text, which is foreign."""

    code: int
    text: str


class Scanner:
    """Reads the bytes in whatever pieces they come."""

    def __init__(self) -> None:
        self._held: bytearray | None = None  # the report that has begun
        self._is_too_long = False
        self._after_escape = False  # the last byte was an ESC: the next one decides

    def feed(self, data: bytes) -> list[Report]:
        found: list[Report] = []
        at = 0
        while at < len(data):
            if self._after_escape:
                self._after_escape = False
                at = self._decide(data, at, found)
            elif self._held is None:
                at = data.find(b"\x1b", at)
                if at < 0:
                    break
                self._after_escape = True
                at += 1
            else:
                at = self._hold(data, at, found)
        return found

    def _decide(self, data: bytes, at: int, found: list[Report]) -> int:
        """What the byte after an ESC means: the end of a report, or the begin of one."""
        byte = data[at]
        if byte == _ESC:
            self._held = None
            self._after_escape = True
        elif self._held is not None and byte == 0x5C:  # backslash: ST
            self._finish(found)
        elif byte == 0x5D:  # ]
            self._held = bytearray()
            self._is_too_long = False
        else:
            self._held = None  # whatever else it begins, it has cut the report off
        return at + 1

    def _hold(self, data: bytes, at: int, found: list[Report]) -> int:
        match = _ENDS.search(data, at)
        end = match.start() if match else len(data)
        held = self._held
        assert held is not None
        if len(held) + end - at > MAX_REPORT_BYTES:
            self._is_too_long = True
        if not self._is_too_long:
            held += data[at:end]
        if end == len(data):
            return end
        if data[end] == _ESC:
            self._after_escape = True
        elif data[end] == _BEL:
            self._finish(found)
        else:
            self._held = None
        return end + 1

    def _finish(self, found: list[Report]) -> None:
        held, self._held = self._held, None
        if held is None or self._is_too_long:
            return
        number, _, text = bytes(held).partition(b";")
        if (code := _KNOWN.get(number)) is not None:
            found.append(Report(code, text.decode("utf-8", "replace")))
