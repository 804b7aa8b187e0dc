"""What the operator chose, kept for the next time without anybody waiting for the disk."""

from __future__ import annotations

import threading
from typing import Any

from textual.app import App

from mam_core.errors import MamError
from mam_core.operations.preferences import Preferences
from mam_tui.errands import beside


class Choices:
    """Of one console; `kept` None: none are taken over, none are kept."""

    def __init__(self, app: App[None], kept: Preferences | None) -> None:
        self._app = app
        self._keeps = kept is not None
        self._has_told = False
        self._turn = threading.Lock()  #: the last one to write writes the newest
        self.now = kept or Preferences()

    @property
    def is_first_run(self) -> bool:
        return self._keeps and not self.now.hint_seen

    def change(self, **choices: Any) -> None:
        """That it cannot be written costs the choices, and is said once."""
        self.now = self.now._replace(**choices)
        if self._keeps:
            beside(self._save)

    def _save(self) -> None:
        try:
            with self._turn:
                self.now.save()
        except (MamError, OSError) as problem:
            if not self._has_told:
                self._has_told = True
                words = f"your choices are not kept for the next time: {problem}"
                self._app.notify(words, severity="warning", markup=False)
