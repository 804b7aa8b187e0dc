"""The palette's commands in our own order; Textual has them by the alphabet."""

from __future__ import annotations

from textual.command import DiscoveryHit, Hits
from textual.system_commands import SystemCommandsProvider


class PaletteOrder(SystemCommandsProvider):
    """As `get_system_commands` yields them; what is typed is looked for as ever."""

    async def discover(self) -> Hits:
        for title, words, command, is_offered in self.app.get_system_commands(self.screen):
            if is_offered:
                yield DiscoveryHit(title, command, help=words)
