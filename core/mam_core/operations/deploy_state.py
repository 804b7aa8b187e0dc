"""How far a deploy has come, on disk beside the registry, so that it can go on after a crash.

``.deploy.json``, 0600, written whole before a step begins and after it has ended: a step that was
begun and not ended is run again. ``.deploy.lock`` is held while one runs.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from mam_core.disk import Folder, sync_fd, temp_name
from mam_core.errors import MamError

STATE = ".deploy.json"
LOCK = ".deploy.lock"
_MAX_BYTES = 1024 * 1024


class DeployRefused(MamError):
    """This deploy is not begun, or does not go on."""

    title = "Deploy"


class Step(StrEnum):
    """In this order, and none without those before it."""

    AUDIT = "audit"
    DECIDE = "decide"
    PULL = "pull"
    VERIFY = "verify"
    UPGRADE = "upgrade"
    RESTART = "restart"
    MONITOR = "monitor"


class Choice(StrEnum):
    """What becomes of jobs that run."""

    WAIT = "wait"  #: new code comes when they are over
    KEEP = "keep"  #: they finish with the old code
    CANCEL = "cancel"


@dataclass(frozen=True)
class Deploy:
    """One deploy; its id is the moment it was begun at."""

    deploy_id: str
    by: str
    done: tuple[Step, ...] = ()
    begun: Step | None = None  #: the step that was under way when this was written
    choice: Choice | None = None
    retry: tuple[str, ...] = ()  #: failed jobs that get a fresh attempt
    failed_before: int = 0
    ended_at: str | None = None
    words: dict[str, str] = field(default_factory=dict)  #: by step, what came of it

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def next(self) -> Step | None:
        return next((step for step in Step if step not in self.done), None)

    @property
    def why(self) -> str:
        """The words on the pause that is ours, by which it is known again."""
        return f"deploy of {self.deploy_id}"

    def with_done(self, step: Step, words: str) -> Deploy:
        done = tuple(one for one in Step if one in self.done or one is step)
        return replace(self, done=done, begun=None, words={**self.words, step: words})


def read(registry_path: str) -> Deploy | None:
    """The last deploy, over or not; raises `DeployRefused` for a file that nobody can read."""
    try:
        with Folder.open(registry_path) as folder:
            data, _ = folder.read(STATE, _MAX_BYTES)
    except FileNotFoundError:
        return None
    try:
        return _decoded(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        path = os.path.join(registry_path, STATE)
        raise DeployRefused(
            f"{path} cannot be read: {problem}; look what it was at, then remove it"
        ) from None


def _decoded(kept: dict[str, Any]) -> Deploy:
    return Deploy(
        str(kept["deploy_id"]),
        str(kept["by"]),
        tuple(Step(one) for one in kept["done"]),
        Step(kept["begun"]) if kept["begun"] else None,
        Choice(kept["choice"]) if kept["choice"] else None,
        tuple(map(str, kept["retry"])),
        int(kept["failed_before"]),
        kept["ended_at"],
        {str(step): str(words) for step, words in kept["words"].items()},
    )


def write(registry_path: str, deploy: Deploy) -> None:
    """Readers, and whoever comes after a power cut, find the old one or this."""
    data = json.dumps(asdict(deploy), ensure_ascii=False, indent=2).encode() + b"\n"
    with Folder.open(registry_path, create=True) as folder:
        temp = temp_name(STATE)
        fd = folder.create(temp, data)
        try:
            sync_fd(fd, folder.path)
            folder.replace(temp, STATE)
        except BaseException:
            folder.remove(temp)
            raise
        finally:
            os.close(fd)
        folder.sync()


@contextmanager
def one_at_a_time(registry_path: str) -> Iterator[int]:
    """The lock, as an open file. Raises `DeployRefused` where another one is at it."""
    with Folder.open(registry_path, create=True) as folder:
        fd = folder.open_in_place(LOCK, os.O_RDWR)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DeployRefused("another deploy is under way here") from None
            yield fd
        finally:
            os.close(fd)
