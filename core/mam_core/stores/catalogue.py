"""How the files store finds a job among many: a catalogue of the folder.

`Scan` reads every record each time it is asked. It is slow and cannot be wrong:
the yardstick for anything faster, and what is left when an index cannot be had.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

from mam_core import codec
from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.records import Job, Status, Summary, Unreadable, check_job_id
from mam_core.stores.base import Facts, Query, Want
from mam_core.stores.roll import Roll

RECORD_SUFFIX = ".json"


class Answers(Protocol):
    """What a catalogue knows about all jobs at one moment."""

    @property
    def unreadable(self) -> Sequence[Unreadable]: ...
    def find(self, query: Query) -> list[Summary]: ...
    def bodies(self, query: Query) -> Iterator[Job]: ...
    def stored(self, query: Query) -> Iterator[bytes]: ...
    def next_claimable(self, want: Want, facts: Facts) -> Job | None: ...
    def status_of(self, job_id: str) -> Status | None: ...
    def running_in(self, group: str) -> int: ...
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


class Watch(Protocol):
    """Tells our own changes of the folder from those of strangers, for one transaction."""

    def own_change(self) -> AbstractContextManager[object]:
        """What happens in this block is ours; what moves the folder outside of one is not."""


class Catalogue(Protocol):
    """Keeps up with a folder of records."""

    def is_current(self, folder: Folder) -> bool:
        """Nothing has happened in the folder that this catalogue has not seen."""

    def catch_up(self, folder: Folder, alive: Callable[[], None]) -> None:
        """See what has happened. The caller holds the registry's lock, and shows it by `alive`."""

    def answers(self, folder: Folder) -> Answers:
        """What is known now."""

    def watch(self, folder: Folder) -> Watch:
        """The caller holds the lock and is about to write."""

    def note(
        self, folder: Folder, watch: Watch, written: Sequence[Written], removed: Sequence[str]
    ) -> None:
        """The caller, under `watch`, has written and removed these."""

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


class Unwatched:
    """For a catalogue that keeps nothing."""

    def own_change(self) -> AbstractContextManager[object]:
        return nullcontext()


class Scan:
    """The catalogue that keeps nothing and reads everything."""

    def is_current(self, folder: Folder) -> bool:
        return True

    def catch_up(self, folder: Folder, alive: Callable[[], None]) -> None:
        pass

    def answers(self, folder: Folder) -> Answers:
        return ScanAnswers(folder)

    def watch(self, folder: Folder) -> Watch:
        return Unwatched()

    def note(
        self, folder: Folder, watch: Watch, written: Sequence[Written], removed: Sequence[str]
    ) -> None:
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
