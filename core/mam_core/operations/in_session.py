"""What the worker of a session does before it works: go to its place, and be seen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mam_core.errors import StoreError
from mam_core.presence import Presence
from mam_core.sessions import SessionFolder
from mam_core.tmux.facts import Hand, TmuxFailed
from mam_core.wiring import pane_hand


def stand_in_place(registry_path: str, name: str) -> None:
    """After the settings were read, since these are looked for from where the spawner stood."""
    workdir = SessionFolder(registry_path).get(name).workdir
    try:
        os.chdir(workdir)
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise StoreError(f"session {name} cannot work in {workdir}: {why}") from None
    os.environ["PWD"] = workdir


def own_pane() -> Hand | None:
    """The pane of tmux that this process is in; None outside of tmux."""
    server, pane_id = os.environ.get("TMUX"), os.environ.get("TMUX_PANE")
    if not server or not pane_id:
        return None
    with suppress(TmuxFailed):
        return pane_hand(server, pane_id)
    return None


@contextmanager
def present(registry_path: str, name: str) -> Iterator[None]:
    """While the block lasts, we are the worker of the session; `SessionExists`: there is one."""
    with Presence.announce(SessionFolder(registry_path), name):
        yield
