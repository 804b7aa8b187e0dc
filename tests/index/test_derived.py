"""Whatever happens to a folder, its index answers as the files do.

A machine draws long histories of what we, other handles, scripts of the original
and vandals do to one folder, and after each step asks every question twice: the
index, and the files themselves (queues.md section 9, decision 31).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mam_core.errors import InvalidField, JobNotFound, TransitionRefused, UnreadableRecord
from mam_core.leases import LeaseTerms
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import GateKind
from tests.index.site import (
    AGENTS,
    GROUPS,
    KEYS,
    LABELS,
    LONG,
    PROMPTS,
    Site,
    assert_same,
    drain,
    foreign_record,
)
from tests.support.clock import FakeClock

#: What a person may be told. Anything else that a step raises is a finding.
_FAIR = (InvalidField, JobNotFound, TransitionRefused, UnreadableRecord)

_WHICH = st.integers(0, 40)
_FIELDS = st.fixed_dictionaries(
    {"prompt": st.sampled_from(PROMPTS), "agent": st.sampled_from(AGENTS)},
    optional={
        "group": st.sampled_from(GROUPS),
        "priority": st.integers(-2, 2),
        "timeout_sec": st.sampled_from([90, 2.5]),
        "not_before": st.sampled_from(["+10m", "2020-01-01T00:00:00Z"]),
        "workdir": st.sampled_from(["/", "/tmp"]),
        "expected_artifacts": st.just(["out.txt"]),
    },
)
_FOREIGN = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from([status.value for status in Status]),
        "agent_session": st.sampled_from([*LABELS, ""]),
        "priority": st.sampled_from([-1, 3, 2**63 - 1]),
        "timeout_sec": st.sampled_from([0.5, 60, 10**400]),
        "order": st.sampled_from([None, 0, 5]),
        "group": st.sampled_from([None, *GROUPS]),
        "key": st.sampled_from([None, *KEYS]),
        "prompt": st.sampled_from([*PROMPTS, ""]),
        "after": st.sampled_from([[], ["absent"], ["aa1"], ["aa1", "aa2"], ["aa2", "aa2"]]),
        "not_before": st.sampled_from([None, "soon", "2999-01-01T00:00:00Z"]),
        "created_at": st.sampled_from(["", "yesterday", "2026-06-19T11:30:00+02:00"]),
        "reason": st.sampled_from([None, "timeout", "a word of another tool"]),
        "revision": st.sampled_from([0, 1, 7]),
        "last_seq": st.sampled_from([0, 2**63 - 1]),
        "workdir": st.sampled_from([None, "/", "/tmp"]),
        "expected_artifacts": st.sampled_from([[], ["out.txt"], ["./out.txt", "a", "a"]]),
    },
)
_FOREIGN_IDS = st.sampled_from(["aa1", "aa2", "ZZ-9", "zz_8"])
_JUNK = st.sampled_from(
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        b'{"schema_version": 2}',
        b"[" * 5000,
        foreign_record("somebody-else"),
        foreign_record("aa1", status="asleep"),
    ]
)


class Histories(RuleBasedStateMachine):
    """Steps that a folder can go through; the index is compared after each."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="mam-index-"))
        self.site = Site(self.root / "site", FakeClock())
        self.site.place.mkdir(parents=True, mode=0o700)
        #: Two handles on the same index, and one of a program that knows no index.
        self.handles = [self.site.open(), self.site.open(), self.site.open_plainly()]
        self.steps = 0
        self.unseen = False  #: an edit in place, which only the periodic look can find
        # Ids as random as ever, but the same in each run: a failure must be repeatable.
        same_ids = SimpleNamespace(urandom=random.Random(7).randbytes)
        self.ids = mock.patch("mam_core.registration.os", same_ids)
        self.ids.start()

    def teardown(self) -> None:
        try:
            copy = Site(self.root / "copy", self.site.clock)
            shutil.copytree(self.site.root, copy.root, symlinks=True, ignore=_no_pipes)
            expected = drain(copy.open_plainly())
            copy.close()
            assert drain(self.handles[0]) == expected, "claim order"
        finally:
            self.ids.stop()
            self.site.close()
            shutil.rmtree(self.root, ignore_errors=True)

    @invariant()
    def answers_as_the_files_do(self) -> None:
        if self.unseen:
            self.site.wait_for_look()
            self.unseen = False
        assert_same(self.site, self.handles[self.steps % 2])

    # -- what we do ------------------------------------------------------------------------

    @rule(handle=_WHICH, label=st.sampled_from(LABELS), fields=_FIELDS, after=st.none() | _WHICH)
    def register(self, handle: int, label: str, fields: dict[str, Any], after: int | None) -> None:
        parents = [] if after is None else [self.an_id(after)]
        request = {"agent_session": label, "after": parents, **fields}
        self.act(handle, lambda registry: registry.register([request]))

    @rule(handle=_WHICH, key=st.sampled_from(KEYS))
    def register_with_key(self, handle: int, key: str) -> None:
        request = {"prompt": "p", "agent": "shell", "agent_session": "alpha", "key": key}
        self.act(handle, lambda registry: registry.register([request]))

    @rule(handle=_WHICH, many=st.sampled_from([3, 17]), fields=_FIELDS)
    def register_many(self, handle: int, many: int, fields: dict[str, Any]) -> None:
        batch = [{"agent_session": LABELS[i % 2], **fields} for i in range(many)]
        self.act(handle, lambda registry: registry.register(batch))

    @rule(handle=_WHICH, label=st.sampled_from(LABELS), leased=st.booleans())
    def claim(self, handle: int, label: str, leased: bool) -> None:
        lease = LeaseTerms("worker", 30.0) if leased else None
        self.act(handle, lambda registry: registry.claim(label, lease=lease))

    @rule(handle=_WHICH, which=_WHICH, status=st.sampled_from(list(Status)))
    def set_status(self, handle: int, which: int, status: Status) -> None:
        self.act(handle, lambda registry: registry.set_status(self.an_id(which), status))

    @rule(handle=_WHICH, which=_WHICH, verb=st.sampled_from(["end", "fail", "again", "seq"]))
    def move_on(self, handle: int, which: int, verb: str) -> None:
        job_id = self.an_id(which)
        verbs: dict[str, Callable[[Registry], object]] = {
            "end": lambda r: r.finish(job_id, Status.COMPLETED, attempt=None),
            "fail": lambda r: r.finish(job_id, Status.ERROR, attempt=None, reason=Reason.OOM),
            "again": lambda r: r.requeue(job_id, Reason.LOST, attempt=None, not_before=0),
            "seq": lambda r: r.next_seq(job_id),
        }
        self.act(handle, verbs[verb])

    @rule(handle=_WHICH, which=_WHICH)
    def cancel(self, handle: int, which: int) -> None:
        self.act(handle, lambda registry: registry.request_cancel(self.an_id(which)))

    @rule(handle=_WHICH, which=_WHICH)
    def retry(self, handle: int, which: int) -> None:
        self.act(handle, lambda registry: registry.retry(self.an_id(which)))

    @rule(handle=_WHICH, which=_WHICH, fields=_FIELDS, after=st.none() | _WHICH)
    def edit(self, handle: int, which: int, fields: dict[str, Any], after: int | None) -> None:
        values = dict(fields, agent_session=LABELS[which % 2])
        if after is not None:
            values["after"] = [self.an_id(after)]
        self.act(handle, lambda registry: registry.edit(self.an_id(which), values))

    @rule(handle=_WHICH)
    def archive_what_has_ended(self, handle: int) -> None:
        def ended(registry: Registry) -> object:
            return registry.archive_chosen(lambda tx: [job.job_id for job in tx.ended()])

        self.act(handle, ended)

    @rule(handle=_WHICH)
    def restore(self, handle: int) -> None:
        self.act(handle, lambda registry: registry.restore())

    @rule(handle=_WHICH, name=st.sampled_from(GROUPS), close=st.booleans())
    def gate(self, handle: int, name: str, close: bool) -> None:
        change = Registry.pause if close else Registry.resume
        self.act(handle, lambda registry: change(registry, GateKind.GROUP, name))

    # -- what strangers do -----------------------------------------------------------------

    @rule(job_id=_FOREIGN_IDS, fields=_FOREIGN)
    def rename_in(self, job_id: str, fields: dict[str, Any]) -> None:
        if not self.site.file(job_id).is_dir():
            self.site.rename_in(job_id, foreign_record(job_id, **fields))

    @precondition(lambda self: self.files())
    @rule(which=_WHICH)
    def remove(self, which: int) -> None:
        _remove(self.a_file(which))

    @precondition(lambda self: self.plain_files())
    @rule(which=_WHICH, fields=_FOREIGN)
    def edit_in_place(self, which: int, fields: dict[str, Any]) -> None:
        """Also mends what was junk, in place."""
        files = self.plain_files()
        path = files[which % len(files)]
        try:
            data = json.loads(path.read_bytes())
            assert data["job_id"] == path.stem
        except (ValueError, TypeError, KeyError, AssertionError, RecursionError):
            data = json.loads(foreign_record(path.stem))
        # Of another length than before, so that no clock is too coarse to tell them apart.
        data |= fields | {"padding": "x" * (self.steps % 89)}
        path.write_text(json.dumps(data))
        self.unseen = True

    @precondition(lambda self: self.plain_files())
    @rule(which=_WHICH, junk=_JUNK)
    def spoil_in_place(self, which: int, junk: bytes) -> None:
        files = self.plain_files()
        files[which % len(files)].write_bytes(junk)
        self.unseen = True

    @rule(job_id=_FOREIGN_IDS, junk=_JUNK, kind=st.sampled_from(["file", "folder", "link", "pipe"]))
    def junk_appears(self, job_id: str, junk: bytes, kind: str) -> None:
        path = self.site.file(job_id)
        _remove(path)
        if kind == "file":
            self.site.rename_in(job_id, junk)
        elif kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to("/etc/hostname")
        else:
            os.mkfifo(path)

    # -- what happens to the index -----------------------------------------------------------

    @rule()
    def time_passes(self) -> None:
        self.site.wait_for_look()
        self.site.clock.pass_time(601)

    @rule(handle=st.integers(0, 1))
    def reopen(self, handle: int) -> None:
        self.handles[handle].store.close()
        self.handles[handle] = self.site.open()

    @rule(way=st.sampled_from(["gone", "file", "link", "dangling", "litter", "folder"]))
    def replace_index(self, way: str) -> None:
        home = self.site.home
        _remove(home)
        if way == "file":
            home.write_text("mine")
        elif way == "link":
            (self.root / "elsewhere").mkdir(exist_ok=True)
            home.symlink_to(self.root / "elsewhere")
        elif way == "dangling":
            home.symlink_to("nowhere")
        elif way == "litter":
            (home / "a folder").mkdir(parents=True)
        elif way == "folder":
            self.site.database.mkdir(parents=True)

    @precondition(lambda self: self.site.database.is_file())
    @rule(way=st.sampled_from(["cut", "head", "page", "zero", "wal", "no wal"]), at=_WHICH)
    def damage_index(self, way: str, at: int) -> None:
        for handle in self.handles:  # an open one would go on with what it has in memory
            handle.store.close()
        wal = self.site.database.with_name(self.site.database.name + "-wal")
        if way == "no wal":
            wal.unlink(missing_ok=True)
            return
        target = wal if way == "wal" and wal.exists() else self.site.database
        size = target.stat().st_size
        if way in ("cut", "wal"):
            os.truncate(target, size * (at % 10) // 10 + at)
            return
        pages = max(size // 4096, 1)
        with open(target, "r+b") as file:
            file.seek(0 if way == "head" else at % pages * 4096)
            file.write(bytes(4096) if way == "zero" else random.Random(at).randbytes(4096))

    # -- choosing ----------------------------------------------------------------------------

    def act(self, handle: int, verb: Callable[[Registry], object]) -> None:
        self.steps += 1
        self.site.clock.pass_time(0.5)
        with suppress(*_FAIR):
            verb(self.handles[handle % 3])

    def files(self) -> list[Path]:
        return sorted(self.site.place.glob("*.json"))

    def plain_files(self) -> list[Path]:
        return [path for path in self.files() if path.is_file() and not path.is_symlink()]

    def a_file(self, which: int) -> Path:
        files = self.files()
        return files[which % len(files)]

    def an_id(self, which: int) -> str:
        files = self.files()
        return files[which % len(files)].stem if files else "absent"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _no_pipes(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_fifo()]


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=15, stateful_step_count=25)


def test_the_drawn_prompts_reach_past_what_the_index_keeps() -> None:
    """The machine's longest prompt must have words on both sides of the border and across it."""
    assert LONG[:4000].endswith("BORDERLI")
    assert LONG.casefold().index("late words") > 4000
