"""What a player was told: the acknowledgements that the registry must not lose.

Each player writes a line before a call and a line after its answer, each with
one append, so that a kill leaves whole lines and at most one call open.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple


class Phase(StrEnum):
    """How far a call came."""

    BEGUN = "begun"
    DONE = "done"  #: the call returned: from here on its effect is owed
    REFUSED = "refused"  #: a clear error that the workload expects
    BROKEN = "broken"  #: anything else, which is a finding


class Act(StrEnum):
    """What players do."""

    REGISTER = "register"
    CLAIM = "claim"
    HEARTBEAT = "heartbeat"
    FINISH = "finish"
    REQUEUE = "requeue"
    CANCEL = "cancel"
    RETRY = "retry"
    EDIT = "edit"
    OVERRIDE = "override"
    SEQ = "seq"
    ARCHIVE = "archive"
    RESTORE = "restore"
    READ = "read"
    PAUSE = "pause"


class Entry(NamedTuple):
    """One line of a diary."""

    player: str
    phase: Phase
    act: Act
    facts: dict[str, Any]


class Diary:
    """A player's own file; nobody else writes there."""

    def __init__(self, folder: Path, player: str) -> None:
        self.player = player
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._fd = os.open(folder / f"{player}.ndjson", flags, 0o600)

    def write(self, phase: Phase, act: Act, facts: dict[str, Any]) -> None:
        line = json.dumps([self.player, phase, act, facts]).encode() + b"\n"
        # One call, so that the line is there whole or not at all.
        if os.write(self._fd, line) != len(line):
            raise OSError("a diary line was cut short")

    def close(self) -> None:
        os.close(self._fd)


def read_diaries(folder: Path) -> list[Entry]:
    """All entries; of one player in the order in which they were written."""
    return [entry for path in sorted(folder.glob("*.ndjson")) for entry in read_diary(path)]


def read_diary(path: Path) -> Iterator[Entry]:
    """Whole lines: the kernel may show the beginning of one that is just being written."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    for line in whole.splitlines():
        player, phase, act, facts = json.loads(line)
        yield Entry(player, Phase(phase), Act(act), facts)


def open_call(folder: Path, player: str) -> Entry | None:
    """The call that a player had begun when it was killed, if any."""
    path = folder / f"{player}.ndjson"
    last = None
    if path.exists():
        for entry in read_diary(path):
            last = entry
    return last if last is not None and last.phase is Phase.BEGUN else None
