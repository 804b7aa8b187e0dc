"""The folder of a demonstration: private, random, and locked by its owner for as long as he lives.

Whoever is granted the lock knows that the owner is gone, however that came about, and may
clear the folder away. A folder without a lock was left in the moment in which it was made.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from mam_core.config import Config, load

PREFIX = "mam-demo-"

_OWNER = "owner"
#: A folder without a lock that is older than this is nobody's.
_BEING_MADE_SEC = 60.0
#: What a person has set for his own registry, or an agent for its job, is not meant for this one.
_NOT_MEANT = ("MAM_", "MQTT_", "DELEGATE_JOB_")
_KEPT = frozenset({"MAM_DEBUG"})


class Place(NamedTuple):
    """Where everything of one demonstration is."""

    root: str

    @property
    def registry_path(self) -> str:
        return os.path.join(self.root, "jobs")

    @property
    def config_path(self) -> str:
        return os.path.join(self.root, "mam.toml")

    @property
    def workdir(self) -> str:
        """What the simulated agents write into."""
        return os.path.join(self.root, "project")

    @property
    def state_home(self) -> str:
        """For what the console remembers; the operator's own choices stay as they are."""
        return os.path.join(self.root, "state")

    def config(self) -> Config:
        """By the folder's own file and no variable; the defaults where it was never written."""
        if not os.path.exists(self.config_path):
            return Config()
        return load(self.config_path, environ={}, cwd=self.root)

    @property
    def is_there(self) -> bool:
        """The folder, and ours alone: a link or a stranger's is none."""
        try:
            facts = os.lstat(self.root)
        except OSError:
            return False
        return (
            stat.S_ISDIR(facts.st_mode)
            and facts.st_uid == os.geteuid()
            and not facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        )


def make() -> tuple[Place, int]:
    """A new one with its lock, which is held until that descriptor is closed."""
    place = Place(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX)))
    os.mkdir(place.workdir, 0o700)
    # Locked before it has its name: nobody ever sees it free while the owner lives.
    path = os.path.join(place.root, _OWNER)
    lock = os.open(f"{path}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(f"{path}.new", path)
    return place, lock


def take_over(place: Place, *, wait: bool) -> int | None:
    """The lock of an owner who is gone, to be closed by the caller; None: it cannot be had."""
    try:
        lock = os.open(os.path.join(place.root, _OWNER), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def leftovers() -> Iterator[Place]:
    """Folders that look like ours and may be without an owner; `take_over` tells."""
    home = os.path.realpath(tempfile.gettempdir())
    with suppress(OSError), os.scandir(home) as entries:
        for entry in entries:
            place = Place(entry.path)
            if entry.name.startswith(PREFIX) and place.is_there:
                yield place


def is_half_made(place: Place) -> bool:
    """Its maker died before there was a lock."""
    if os.path.lexists(os.path.join(place.root, _OWNER)):
        return False
    with suppress(OSError):
        return time.time() - os.lstat(place.root).st_mtime > _BEING_MADE_SEC
    return False


@contextmanager
def surroundings(place: Place) -> Iterator[None]:
    """While the block lasts, this process stands in the demonstration and not in the person's own.

    What it starts inherits that: no event goes to another broker, nothing is written elsewhere.
    Only the account of a crash goes to the person's own folder: this one is gone before it is read.
    """
    from mam_core.locations import state_folder
    from mam_core.operations.crash import kept_in
    from mam_core.operations.preferences import Preferences

    chosen, own_state = Preferences.load(), state_folder()
    before = dict(os.environ)
    try:
        back = os.getcwd()
    except FileNotFoundError:  # the folder that we were called from was removed
        back = "/"
    for name in before:
        if name.startswith(_NOT_MEANT) and name not in _KEPT:
            del os.environ[name]
    os.environ["XDG_STATE_HOME"] = place.state_home
    try:
        chosen.save()
        os.chdir(place.workdir)
        os.environ["PWD"] = place.workdir
        with kept_in(own_state):
            yield
    finally:
        os.chdir(back if os.path.isdir(back) else "/")
        os.environ.clear()
        os.environ.update(before)
