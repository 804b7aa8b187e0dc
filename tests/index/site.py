"""One folder of records, seen in two ways: by its index, and by reading every file.

The second cannot be wrong, so whatever the two answer differently is a fault of
the index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mam_core.audit import AuditLog
from mam_core.disk import Folder
from mam_core.records import ENDED, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query, Want
from mam_core.stores.catalogue import Answers, Scan, ScanAnswers
from mam_core.stores.files import FilesStore
from mam_core.stores.index import INDEX_FOLDER, INDEX_NAME, Index
from mam_core.summaries import Unreadable
from tests.support.clock import FakeClock

LABELS = ("alpha", "beta")
AGENTS = ("shell", "claude-code")
GROUPS = ("night", "day")
KEYS = ("nightly", "weekly")
ARTIFACTS = ("/out.txt", "/tmp/out.txt")

#: Longer than what the index keeps of a prompt, with words before, across and after that border.
LONG = "early words " + "x" * 3980 + "BORDERLINE" + "y" * 2000 + " late Words"

PROMPTS = ("count the stars", "Straße ΣΊΣΥΦΟΣ 100% a_b", "별을 세어라", LONG)

#: With what the text filter could get wrong: case that changes the length, wildcards, the border.
TEXTS = ("", "STRASSE", "σίσυφος", "0%", "a_b", "borderline", "LATE WORDS", "별을", "absent")


class OneScan(Scan):
    """Reads every record once, and answers from that: for many questions about one moment."""

    def __init__(self) -> None:
        self._read: ScanAnswers | None = None

    def latest(self, folder: Folder) -> Answers:
        if self._read is None:
            self._read = ScanAnswers(folder)
        return self._read


class Site:
    """A registry below `root`. The index has a clock of its own, which decides when it looks."""

    def __init__(self, root: Path, clock: FakeClock) -> None:
        self.root = root
        self.place = root / "jobs"
        self.clock = clock
        self.looks = FakeClock()
        self._opened: list[Registry] = []

    @property
    def home(self) -> Path:
        return self.place / INDEX_FOLDER

    @property
    def database(self) -> Path:
        return self.home / INDEX_NAME

    def open(self, **options: Any) -> Registry:
        """One more handle that uses the index."""
        return self._registry(FilesStore(**self._parts(), catalogue=Index(self.looks)), options)

    def open_plainly(self, **options: Any) -> Registry:
        """A handle that reads every file each time."""
        return self._registry(FilesStore(**self._parts(), catalogue=Scan()), options)

    def truth(self) -> Registry:
        """What is in the files at this moment."""
        return self._registry(FilesStore(**self._parts(), catalogue=OneScan()), {})

    def close(self) -> None:
        for registry in self._opened:
            registry.store.close()
        self._opened.clear()

    def wait_for_look(self) -> None:
        """So long that the index looks at every file again, also on a slow machine."""
        self.looks.pass_time(10_000)

    def a_job(self) -> str:
        return min(path.stem for path in self.place.glob("*.json"))

    # -- what strangers do -----------------------------------------------------------------

    def file(self, job_id: str) -> Path:
        return self.place / f"{job_id}.json"

    def record(self, job_id: str) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.file(job_id).read_bytes())
        return data

    def edit_in_place(self, job_id: str, **changes: Any) -> None:
        """As an editor does that keeps the file: no date of the folder changes."""
        before = self.file(job_id).stat().st_ino
        self.file(job_id).write_text(json.dumps(self.record(job_id) | changes))
        assert self.file(job_id).stat().st_ino == before

    def rename_in(self, name: str, content: bytes) -> Path:
        """As scripts of the original do, without the lock."""
        written = self.root / f"incoming-{name}"
        written.write_bytes(content)
        target = self.place / f"{name}.json"
        written.replace(target)
        return target

    def _parts(self) -> dict[str, Any]:
        return {"path": str(self.place), "audit": AuditLog(str(self.root / "logs"))}

    def _registry(self, store: FilesStore, options: dict[str, Any]) -> Registry:
        given: dict[str, Any] = {"clock": self.clock, "actor": "ann", "node": "host", **options}
        registry = Registry(store, **given)
        self._opened.append(registry)
        return registry


def foreign_record(job_id: str, **more: Any) -> bytes:
    """A record as another tool writes it: the document's keys, and none of ours."""
    data = {
        "schema_version": 1,
        "job_id": job_id,
        "status": "pending",
        "created_at": "2026-06-19T09:29:00Z",
        "updated_at": "2026-06-19T09:29:00Z",
        "prompt": "from another tool",
        "agent": "shell",
        "agent_session": "alpha",
        "broker": {"host": "h", "port": 1, "tls": False, "username": None, "password": None},
        "topic_prefix": f"python/mqtt/jobs/{job_id}",
        "timeout_sec": 600,
        "idle_timeout_sec": 120,
        "expected_artifacts": [],
        "last_seq": 0,
        "auth_token": None,
    }
    return json.dumps(data | more).encode()


# -- every question ------------------------------------------------------------------------------


def told(registry: Registry, ids: Iterable[str] = ()) -> dict[str, Any]:
    """Everything that a registry answers, by question."""
    return _listed(registry, ids) | _asked_under_the_lock(registry, ids)


def assert_same(site: Site, *handles: Registry) -> None:
    """Each handle answers every question as the files do."""
    ids = sorted(path.stem for path in site.place.glob("*.json"))
    truth = told(site.truth(), ids)
    for registry in handles:
        answers = told(registry, ids)
        wrong = [question for question in truth if answers[question] != truth[question]]
        assert not wrong, (
            f"{len(wrong)} of {len(truth)} answers are wrong; {wrong[0]!r}:\n"
            f"the index says {answers[wrong[0]]!r:.2000}\nthe files say {truth[wrong[0]]!r:.2000}"
        )


def _queries(ids: Iterable[str]) -> Iterable[Query]:
    yield Query()
    for status in Status:
        yield Query(frozenset({status}))
    yield Query(ENDED)
    for label in (*LABELS, "", "nobody's"):
        yield Query(agent_session=label)
    for group in (*GROUPS, ""):
        yield Query(group=group)
    for agent in AGENTS:
        yield Query(agent=agent)
    for text in (*TEXTS, *[job_id[2:6].upper() for job_id in ids][:3]):
        yield Query(text=text)
    yield Query(frozenset({Status.PENDING}), "alpha", "night", "shell", "stars")


def _listed(registry: Registry, ids: Iterable[str]) -> dict[str, Any]:
    store = registry.store
    answers: dict[str, Any] = {"unreadable": store.unreadable()}
    for query in _queries(ids):
        answers[f"find {query}"] = store.find(query)
    live = Query(frozenset({Status.PENDING, Status.RUNNING}))
    answers["bodies"] = list(store.bodies(live))
    answers["stored"] = [
        one.job_id if isinstance(one, Unreadable) else json.loads(one)["job_id"]
        for one in store.stored(live)
    ]
    answers["counts"] = {
        status: sum(job.status is status for job in store.find(Query())[0]) for status in Status
    }
    return answers


def _asked_under_the_lock(registry: Registry, ids: Iterable[str]) -> dict[str, Any]:
    now = registry.clock.now()
    answers: dict[str, Any] = {}
    with registry.store.transaction() as tx:
        for label in LABELS:
            for agents in (None, frozenset({"shell"}), frozenset({"claude-code", "shell"})):
                for slots in ({}, {"night": 1, "day": 0}):
                    want = Want(label, agents, now, slots)
                    answers[f"claim {want}"] = tx.next_claimable(want)
            for prompt in PROMPTS:
                answers[f"twin {label} {prompt[:20]}"] = tx.live_twin(label, prompt)
        for path in ARTIFACTS:
            answers[f"writer {path}"] = tx.live_writer(path)
        for key in KEYS:
            answers[f"key {key}"] = tx.live_with_key(key)
        for group in GROUPS:
            answers[f"running {group}"] = tx.running_in(group)
        for job_id in (*ids, "absent"):
            answers[f"status {job_id}"] = tx.status_of(job_id)
        answers["awaited"] = tx.awaited()
        answers["ended"] = list(tx.ended())
        answers["last order"] = tx.last_order()
    return answers


def drain(registry: Registry) -> dict[str, list[str]]:
    """Claim everything that can be claimed; the ids of each label in the order they came."""
    order: dict[str, list[str]] = {label: [] for label in LABELS}
    for label in LABELS:
        while (job := registry.claim(label)) is not None:
            order[label].append(job.job_id)
    return order


def ids_of(registry: Registry) -> list[str]:
    """What a list shows."""
    found, unreadable = registry.store.find(Query())
    return sorted([row.job_id for row in found] + [row.job_id for row in unreadable])
