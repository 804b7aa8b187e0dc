"""The screen as a picture in a file: SVG, which scales and whose text can be copied.

What stands on the screen is safe text already. The file is a new one that only its owner reads,
as with everything that is exported; it refers to no place in the network.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from mam_core.errors import MamError
from mam_core.operations.export import create
from mam_tui.errands import beside
from mam_tui.soon import soon

if TYPE_CHECKING:
    from mam_tui.app import Console

_ENDING = ".svg"
#: It would fetch its letters from a server whenever somebody looks at it.
_FONT_FACES = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)
#: Until what the command was given in (the palette, the ``:`` line) is off the screen.
_GONE_SEC = 0.2


def take(console: Console, path: str = "") -> None:
    """Named by view and time in the folder where we are, unless it has a name."""
    view = console.views.current
    now = time.localtime(console.desk.clock())
    name = f"mam-{view.NAME if view is not None else 'board'}-%Y%m%d-%H%M%S{_ENDING}"
    place = path or time.strftime(name, now)
    if not place.lower().endswith(_ENDING):
        place += _ENDING
    soon(console, _GONE_SEC, lambda: _draw(console, place))


def _draw(console: Console, place: str) -> None:
    picture = _FONT_FACES.sub("", console.export_screenshot(title="mam"))
    beside(lambda: _write(console, place, picture))


def _write(console: Console, place: str, picture: str) -> None:
    """On a thread."""
    try:
        words = f"the screen is in {create(place, picture.encode('utf-8', 'replace'))}"
    except MamError as problem:
        console.notify(problem.message, severity="error", markup=False)
    else:
        console.notify(words, markup=False)
