"""Whether a terminal program takes a paste as one, or as keys: it switches that itself.

tmux 3.3 knows and does not say, but every byte that the agent writes passes through
us. Without the mode each line end of a paste is an Enter: a text of two lines
would be two prompts.
"""

from __future__ import annotations

import re

#: Set or reset private modes, any number at once; or reset all that there is.
_SWITCH = re.compile(rb"\x1b\[\?([0-9;]*)([hl])|\x1bc")
_BRACKETED = b"2004"
#: A sequence may come in two pieces. What is read twice comes out the same, in its order.
_REST_BYTES = 64


class PasteMode:
    """Fed with all that the program writes."""

    def __init__(self) -> None:
        self.is_bracketed = False
        self._rest = b""

    def feed(self, data: bytes) -> None:
        text = self._rest + data
        for match in _SWITCH.finditer(text):
            if match[2] is None:
                self.is_bracketed = False
            elif _BRACKETED in match[1].split(b";"):
                self.is_bracketed = match[2] == b"h"
        self._rest = text[-_REST_BYTES:]
