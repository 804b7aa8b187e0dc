"""Show a session in the terminal of whoever asks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from mam_core.config import Config
from mam_core.near_names import did_you_mean
from mam_core.operations.sessions import by_session
from mam_core.safe_text import one_line
from mam_core.sessions import LABEL_PREFIX, check_name
from mam_core.tmux.facts import NoSuchSession, TmuxFailed
from mam_core.wiring import open_tmux, tmux_socket


class Attachment(NamedTuple):
    """The program that shows it, to be executed as it is."""

    argv: list[str]
    is_nested: bool = False  #: a tmux inside another tmux
    is_switch: bool = False  #: our own client goes over to it, and the program ends at once


def attachment(
    registry_path: str, config: Config, name: str, environ: Mapping[str, str]
) -> Attachment:
    """Raises `NoSuchSession`. `environ` says whether we are in a tmux ourselves: in our own server
    the client goes over to the session, in any other the session is shown inside."""
    server = open_tmux(registry_path, config)
    there = by_session(server.panes())
    if check_name(name) not in there:
        pool = sorted(one for one, pane in there.items() if pane.label == LABEL_PREFIX + name)
        if pool:
            raise NoSuchSession(f"{name} is a pool: name one of {', '.join(pool)}")
        raise NoSuchSession(
            f"there is no session {name} in tmux; `mam sessions` shows those on record"
            f"{did_you_mean(name, there)}"
        )
    argv = server.attach_argv(name)
    inside = environ.get("TMUX", "").partition(",")[0]
    if not inside:
        return Attachment(argv)
    socket = tmux_socket(registry_path, config)
    if os.path.basename(inside) == socket:
        # A tmux client in a tmux client would hold the same keys twice.
        argv = ["tmux", "-S", inside, "switch-client", "-t", f"={name}"]
        return Attachment(argv, is_switch=True)
    return Attachment(argv, is_nested=True)


def shown(found: Attachment) -> None:
    """Show it, and wait until it is left; for a program that lives on. Raises `TmuxFailed`."""
    import subprocess  # `mam attach` itself becomes tmux

    try:
        done = subprocess.run(found.argv, stderr=subprocess.PIPE, check=False)
    except OSError as problem:
        raise TmuxFailed(f"tmux could not be started: {problem.strerror}") from None
    if done.returncode != 0 and (said := one_line(done.stderr.decode(errors="replace"))):
        raise TmuxFailed(f"tmux: {said}")
