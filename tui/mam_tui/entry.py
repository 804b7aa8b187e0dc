"""How the console is opened: from the command line, with its settings."""

from __future__ import annotations

import os
from typing import NamedTuple

from mam_core.config import Config
from mam_core.operations.preferences import Preferences
from mam_tui import errands, garbage
from mam_tui.app import Console
from mam_tui.desk import Desk
from mam_tui.filters import parse
from mam_tui.own_settings import check
from mam_tui.plain import wants_ascii
from mam_tui.terminal import drawn_on


class Left(NamedTuple):
    """The console was left."""

    exit_code: int
    then: str = ""  #: the verb that its operator wants next, in the same terminal
    is_whole: bool = True  #: nothing that was under way was given up


def run(
    registry_path: str,
    config: Config,
    *,
    config_path: str | None = None,
    allow_network: bool = False,
    view: str | None = None,
    filter_text: str = "",
    read_only: bool = False,
    mouse: bool = True,
) -> Left:
    """Until the operator leaves; raises `ConfigError` for what only the console can check."""
    garbage.hold()
    # A shell says here how large the terminal was when we were started, and Textual would believe
    # that whatever becomes of the window.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    desk = Desk(
        registry_path,
        config,
        config_path=config_path,
        allow_network=allow_network,
        read_only=read_only,
        keys=check(config),
    )
    desk.board.filter = parse(filter_text)
    console = Console(
        desk,
        ascii_only=wants_ascii(config.console.glyphs, os.environ),
        view=view,
        kept=Preferences.load(),
    )
    try:
        with drawn_on(console):
            console.run(mouse=mouse and config.console.mouse)
    finally:
        # A signal or a crash unmounts nothing, and our duties would go on beside whoever called.
        console.noticing.close()
        console.bridge.close()
        is_whole = errands.await_all()
        garbage.let_go()
    return Left(console.exit_code, desk.then, is_whole)
