"""How a demonstration goes: its workers, its sessions, its broker, its folder; in this order.

Done by its owner at the end, by the guard when the owner was killed, and by the next
demonstration when both were. Whatever is gone already is no trouble, so that several may do it
one after the other. Only what carries the folder's random name is ever signalled.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from mam_core.config import Config
from mam_core.demo import place as places
from mam_core.demo.place import Place
from mam_core.errors import MamError
from mam_core.pace import paced
from mam_core.presence import worker_of
from mam_core.process_mark import ProcessMark
from mam_core.sessions import SessionFolder
from mam_core.tmux.names import socket_path, turnstile_path
from mam_core.wiring import embedded_broker, open_tmux, tmux_socket
from mam_core.work.processes import HAS_PROC, pids, read_fact

#: A worker that hands back ends its agents first, and a busy machine takes its time.
_WORKERS_SEC = 20.0
_STRAYS_SEC = 3.0
_TMUX_SEC = 5.0
#: The broker's own grace and more.
_BROKER_SEC = 10.0
_FOLDER_SEC = 5.0
_LOOK_SEC = 0.03

_WORKER = b"\0-m\0mam_core\0work\0"
#: What else may have been started for a registry, by the words that ours have in their command.
_OTHERS = (b"mam_core.operations.left_relay", b"simulated.py\0")


def clear(place: Place) -> None:
    """Nothing of it is left afterwards; raises `OSError` when the folder cannot be removed."""
    config = place.config()
    end_workers(place)
    _end_sessions(place, config)
    _end(_carriers(place, _OTHERS), _STRAYS_SEC)
    _until(lambda: not embedded_broker(place.registry_path).status().running, _BROKER_SEC)
    _remove(place.root)


def clear_leftovers() -> int:
    """Of demonstrations whose owner and whose guard were killed; how many there were."""
    count = 0
    for place in places.leftovers():
        lock = places.take_over(place, wait=False)
        if lock is None and not places.is_half_made(place):
            continue
        try:
            clear(place)
            count += 1
        except (MamError, OSError):
            continue  # the next one tries again
        finally:
            if lock is not None:
                os.close(lock)
    return count


def end_workers(place: Place) -> None:
    """Asked first, all at once: each of them ends its agents and hands back its jobs."""
    sessions = SessionFolder(place.registry_path)
    with suppress(MamError, OSError):
        named = [session.name for session in sessions.all()[0]]
        announced = [mark for name in named if (mark := worker_of(sessions, name))]
        _end(announced, _WORKERS_SEC)
    _end(_carriers(place, (_WORKER,)), _WORKERS_SEC)


def _end_sessions(place: Place, config: Config) -> None:
    """Those of ours, by their names; the server that we started goes with the last of them."""
    server = open_tmux(place.registry_path, config)
    with suppress(MamError):
        for name in {pane.session for pane in server.panes() if pane.label}:
            with suppress(MamError):
                server.end(name)
        server.let_go()
        _until(lambda: not server.is_running, _TMUX_SEC)
    if not server.is_running:
        socket = socket_path(tmux_socket(place.registry_path, config))
        for path in (socket, turnstile_path(socket)):
            with suppress(OSError):  # tmux leaves it where it was
                os.unlink(path)


def _carriers(place: Place, words: Iterable[bytes]) -> list[ProcessMark]:
    """Processes of ours that were told of this folder. Without /proc nobody is found: there the
    supervisors and the broker's watcher see to it that what they own ends."""
    root, found = os.fsencode(place.root), []
    for pid in pids() if HAS_PROC else ():
        command = read_fact(pid, "cmdline")
        if root in command and any(word in command for word in words):
            mark = ProcessMark.of(pid)
            if mark is not None and pid != os.getpid():
                found.append(mark)
    return found


def _end(marks: list[ProcessMark], patience_sec: float) -> None:
    for number, patience in ((signal.SIGTERM, patience_sec), (signal.SIGKILL, _STRAYS_SEC)):
        alive = [mark for mark in marks if mark.is_alive]
        for mark in alive:
            mark.send(number)
            mark.send(signal.SIGCONT)  # one that somebody suspended would never hear it
        if not alive or _until(lambda: not any(mark.is_alive for mark in marks), patience):
            return


def _until(is_so: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(paced(_LOOK_SEC))
    return True


def _remove(root: str) -> None:
    """Somebody's last words may fall into a folder that is just being emptied."""
    deadline = time.monotonic() + _FOLDER_SEC
    while True:
        try:
            shutil.rmtree(root)
        except FileNotFoundError:
            if not os.path.lexists(root):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(paced(_LOOK_SEC))
