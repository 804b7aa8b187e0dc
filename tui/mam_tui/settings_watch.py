"""The settings of the console follow their files: what changed counts at once, and is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam_core.operations.settings import Look, Settings
from mam_tui.errands import later
from mam_tui.own_settings import check
from mam_tui.rounds import Rounds

if TYPE_CHECKING:
    from mam_tui.app import Console

_LOOK_SEC = 2.0

#: The terminal was set up by them.
_FIXED = (("console", "mouse"), ("console", "glyphs"))


class SettingsWatch:
    """Of one console; it looks on a thread of its own, from `open` to `close`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        desk = console.desk
        self._settings = Settings(desk.config, desk.config_path, fixed=_FIXED, check=check)
        self._rounds = Rounds("mam-settings", self._look, _LOOK_SEC)
        self._is_asked = False

    def open(self) -> None:
        self._rounds.watch()

    def close(self) -> None:
        self._rounds.close()

    def look_now(self) -> None:
        """The operator wants everything to be read again."""
        self._is_asked = True
        self._rounds.soon()

    def _look(self) -> None:
        at_once, self._is_asked = self._is_asked, False
        look = self._settings.look(at_once=at_once)
        if look.words():
            later(self._console, self._tell, look)

    def _tell(self, look: Look) -> None:
        console = self._console
        if look.changed:
            console.go_by_settings(look.changed)
        console.notify(
            look.words(), severity="warning" if look.trouble else "information", markup=False
        )
