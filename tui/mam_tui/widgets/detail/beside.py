"""Where the panel stands: beside the table, below it, or nowhere when there is no room."""

from __future__ import annotations

from textual.containers import Container
from textual.geometry import Size

#: From so many columns on it stands beside; from so many rows on, below.
BESIDE = 150
BELOW = 30


class Beside(Container):
    """Holds a table and the detail panel; whoever resizes or toggles calls `settle_room`."""

    DEFAULT_CSS = """
    Beside { height: 1fr; layout: vertical; }
    Beside.-beside { layout: horizontal; }
    Beside DetailPanel { display: none; }
    Beside.-below DetailPanel { display: block; height: 40%; min-height: 10; }
    Beside.-beside DetailPanel {
        display: block; width: 38%; min-width: 60; border-left: solid $panel;
    }
    Beside.-ascii DetailPanel { border-left: none; padding-left: 1; }
    """

    def __init__(self, room: Size, *, wanted: bool = True, ascii_only: bool = False) -> None:
        """`room` is the terminal's size: known from the start, nothing is styled twice."""
        super().__init__(classes="-ascii" if ascii_only else "")
        self.wanted = wanted  #: by the operator
        self._take_place(room, update=False)

    def settle_room(self) -> None:
        self._take_place(self.app.size, update=True)

    def _take_place(self, room: Size, *, update: bool) -> None:
        is_beside = self.wanted and room.width >= BESIDE
        is_below = self.wanted and not is_beside and room.height >= BELOW
        self.set_class(is_beside, "-beside", update=update)
        self.set_class(is_below, "-below", update=update)
