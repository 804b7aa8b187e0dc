"""How the files store finds a job among many: a catalogue of the folder.

`Scan` reads every record each time it is asked. It is slow and cannot be wrong:
the yardstick for anything faster, and what is left when an index cannot be had.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from mam_core import codec
from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.records import Job, Status, check_job_id
from mam_core.stores.base import Facts, NameKind, Query, Want
from mam_core.stores.roll import Roll
from mam_core.summaries import Summary, Unreadable

RECORD_SUFFIX = ".json"


class Answers(Protocol):
    """What a catalogue knows about all jobs at one moment."""

    @property
    def unreadable(self) -> Sequence[Unreadable]: ...
    def find(self, query: Query) -> list[Summary]: ...
    def bodies(self, query: Query) -> Iterator[Job]: ...
    def stored(self, query: Query) -> Iterator[bytes]: ...
    def next_claimable(self, want: Want, facts: Facts) -> Job | None: ...
    def ahead(self, want: Want, job: Summary, facts: Facts) -> int: ...
    def status_of(self, job_id: str) -> Status | None: ...
    def running_in(self, group: str) -> int: ...
    def queued(self) -> dict[str, int]: ...
    def has(self, kind: NameKind, name: str) -> bool: ...
    def names(self, kind: NameKind) -> list[str]: ...
    def live_with_key(self, key: str) -> str | None: ...
    def live_twin(self, agent_session: str, prompt: str) -> str | None: ...
    def live_writer(self, path: str) -> str | None: ...
    def awaited(self) -> frozenset[str]: ...
    def ended(self) -> Iterable[Summary]: ...
    def last_order(self) -> int: ...


class Written(NamedTuple):
    """A record that we have just put in place, and the state of its file."""

    job: Job
    state: os.stat_result


class Sight(Protocol):
    """A catalogue in the hands of the lock's holder, for one transaction."""

    def answers(self) -> Answers:
        """Complete: whatever has happened in the folder is seen first."""

    def before_change(self) -> None:
        """We are about to change the folder; whoever else did so since the last time is noticed."""

    def after_change(self) -> None:
        """That was ours. One that failed need not be told: then the next holder looks."""

    def note(self, written: Sequence[Written], removed: Sequence[str]) -> None:
        """We are about to put these in place and to remove those."""

    def confirm(self) -> None:
        """What was noted is true now."""

    def close(self) -> None:
        """The transaction is over; what was noted and not confirmed is forgotten."""


class Catalogue(Protocol):
    """Keeps up with a folder of records."""

    def current(self, folder: Folder) -> Answers | None:
        """What is known, if nothing has happened in the folder that was not seen."""

    def latest(self, folder: Folder) -> Answers:
        """What was known when somebody last looked: for a reader who does not wait."""

    def sight(self, folder: Folder, alive: Callable[[], None]) -> Sight:
        """The caller holds the registry's lock, and shows by `alive` that it is at work."""

    def close(self) -> None: ...


class ScanAnswers(Roll):
    """A roll of everything readable, and a list of what was not."""

    def __init__(self, folder: Folder) -> None:
        jobs: list[Job] = []
        self.unreadable: list[Unreadable] = []
        for stem in sorted(record_stems(folder)):
            try:
                jobs.append(read_job(folder, stem)[0])
            except FileNotFoundError:
                continue  # removed since we listed it
            except (MamError, OSError) as problem:
                self.unreadable.append(Unreadable(encodable(stem), str(problem)))
        super().__init__(jobs)


class Scan:
    """The catalogue that keeps nothing and reads everything."""

    def current(self, folder: Folder) -> Answers | None:
        return self.latest(folder)

    def latest(self, folder: Folder) -> Answers:
        return ScanAnswers(folder)

    def sight(self, folder: Folder, alive: Callable[[], None]) -> Sight:
        return ScanSight(self, folder)

    def close(self) -> None:
        pass


class ScanSight:
    """Nothing is kept, so nothing is noted."""

    def __init__(self, scan: Scan, folder: Folder) -> None:
        self._scan = scan
        self._folder = folder

    def answers(self) -> Answers:
        return self._scan.latest(self._folder)

    def before_change(self) -> None:
        pass

    def after_change(self) -> None:
        pass

    def note(self, written: Sequence[Written], removed: Sequence[str]) -> None:
        pass

    def confirm(self) -> None:
        pass

    def close(self) -> None:
        pass


def record_stems(folder: Folder) -> Iterator[str]:
    """The names of all records, without their ending; temp files and other files are no records."""
    for name in folder.names():
        if is_record_name(name):
            yield name.removesuffix(RECORD_SUFFIX)


def encodable(value: Any) -> Any:
    """A text with a part that has no UTF-8 form, such as a strange file name, as its escape."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def is_record_name(name: str) -> bool:
    return name.endswith(RECORD_SUFFIX) and not name.startswith(".")


def record_name(job_id: str) -> str:
    return check_job_id(job_id) + RECORD_SUFFIX


def read_job(folder: Folder, job_id: str) -> tuple[Job, os.stat_result]:
    """One record and the state of its file.

    Raises FileNotFoundError, `UnsafePath`, `UnreadableRecord` or `BadJobId`.
    """
    data, state = folder.read(record_name(job_id), codec.MAX_RECORD_BYTES)
    return codec.decode_job(data, job_id), state
