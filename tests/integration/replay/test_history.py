"""Every job that ever was, what persons did, and two attempts side by side."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest

from mam_core.audit import AuditEvent
from mam_core.errors import JobNotFound
from mam_core.messages import MessageKind
from mam_core.operations.compare import NoAttempt, compare
from mam_core.operations.history import History, HistoryBusy
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.replay.chronicle import ENDING, FOLDER
from tests.console.detail_story import HOSTILE, note, output_of, registry_in, two_attempts
from tests.integration.replay.story import Story
from tests.support.clock import FakeClock
from tests.support.jobs import WORKER, add, running
from tests.support.repositories import git, new_repository, private_git


@pytest.fixture
def registry(tmp_path: Path, clock: FakeClock) -> Registry:
    return registry_in(tmp_path, clock)


def refreshed(registry: Registry) -> History:
    history = History(registry)
    for done, total in history.refresh():
        assert 0 <= done <= total
    return history


def test_a_job_that_is_gone_is_still_there_with_how_it_ended(
    registry: Registry, clock: FakeClock, tmp_path: Path
) -> None:
    gone = running(registry, prompt="count the stars", group="night", lease=WORKER).job_id
    clock.pass_time(60)
    facts = {"tokens": {"input": 100, "output": 20}, "cost": 0.5}
    note(registry, gone, AuditEvent.ATTEMPT_ENDED, attempt=1, **facts)
    registry.finish(gone, Status.ERROR, attempt=1, reason=Reason.EXIT, detail="left with 3")
    registry.archive([gone])
    clock.pass_time(60)
    here = add(registry, "count the birds")
    with refreshed(registry) as history:
        first, second = history.page()
        assert (first.entry.job_id, first.exists) == (here, True)
        assert (second.entry.job_id, second.exists) == (gone, False)
        entry = second.entry
        assert (entry.status, entry.reason, entry.detail) == ("error", "exit", "left with 3")
        assert (entry.agent, entry.agent_session, entry.group) == ("shell", "alpha", "night")
        assert (entry.attempts, entry.tokens, entry.cost) == (1, 120, 0.5)
        assert entry.ended_at is not None
        assert entry.ended_at - (entry.started_at or 0) == 60
        assert entry.head == "count the stars"
        assert entry.archived
        json.dumps(second.to_dict())
    shutil.rmtree(tmp_path / "jobs")
    with refreshed(registry) as history:
        assert [row.exists for row in history.page()] == [False, False]


def test_pages_follow_each_other_and_words_choose(registry: Registry, clock: FakeClock) -> None:
    ids = []
    for number in range(25):
        clock.pass_time(number % 3)  # some at the same moment
        ids.append(add(registry, f"Count part {number} 별", agent=("aider", "codex")[number % 2]))
    with refreshed(registry) as history:
        assert len(history) == 25
        seen, page = [], history.page(limit=7)
        while page:
            seen += [row.entry.job_id for row in page]
            page = history.page(page[-1], limit=7)
        assert sorted(seen) == sorted(ids)
        assert len(history.page(text="CODEX part")) == 12
        assert [row.entry.job_id for row in history.page(text=f"{ids[3]}")] == [ids[3]]
        assert history.page(text="codex nothing") == []
        assert len(history.page(text="\udfff 별")) == 0


def test_it_agrees_with_the_records_after_a_random_story(tmp_path: Path, clock: FakeClock) -> None:
    story = Story(tmp_path, clock, seed=5)
    for _ in range(4):  # read on each time from where it stopped
        story.play(40)
        refreshed(story.registry).__exit__()
    with refreshed(story.registry) as history, History(story.registry) as anew:
        rows = history.page()
        sight = story.sights[-1]
        assert {row.entry.job_id for row in rows if row.exists} == sight.jobs.keys()
        for row in rows:
            if row.exists:
                record = sight.records[row.entry.job_id]
                assert row.entry.status == record.status
                assert row.entry.attempts == record.attempt
                assert row.entry.reason == (record.reason or "")
        acts = history.acts()
        shutil.rmtree(os.path.join(story.registry.store.audit.path, FOLDER))
    with refreshed(story.registry) as anew:  # it is derived: made again, it is the same
        assert anew.page() == rows
        assert anew.acts() == acts


def test_a_damaged_index_is_made_anew_and_a_link_is_not_followed(
    registry: Registry, tmp_path: Path
) -> None:
    job_id = add(registry)
    refreshed(registry).__exit__()
    place = Path(registry.store.audit.path, FOLDER, registry.store.audit.kept_as + ENDING)
    place.write_bytes(b"no database " * 1000)
    with refreshed(registry) as history:
        assert [row.entry.job_id for row in history.page()] == [job_id]
    for name in os.listdir(place.parent):
        (place.parent / name).unlink()
    other = tmp_path / "other"
    place.symlink_to(other)
    with refreshed(registry) as history:
        assert [row.entry.job_id for row in history.page()] == [job_id]
    assert not other.exists()


def test_a_log_that_was_replaced_is_read_anew(registry: Registry) -> None:
    job_id = add(registry)
    registry.request_cancel(job_id)
    refreshed(registry).__exit__()
    log = Path(registry.store.audit.path, job_id, "events.ndjson")
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0] + b'{"half of a li')
    with refreshed(registry) as history:
        assert [row.entry.status for row in history.page()] == ["pending"]
        assert [act.verb for act in history.acts()] == ["register"]


def test_acts_are_those_of_persons(registry: Registry, clock: FakeClock) -> None:
    registry.actor = "ann"
    job = running(registry, lease=WORKER)
    for act in (
        lambda: registry.send(job.job_id, MessageKind.SAY, HOSTILE),
        lambda: registry.request_cancel(job.job_id, "enough"),
        lambda: registry.requeue(job.job_id, Reason.LOST, attempt=1),  # a sweep ends what she asked
        lambda: registry.retry(job.job_id),
        lambda: registry.edit(job.job_id, {"priority": 3}),
        lambda: registry.request_cancel(job.job_id, "after all"),
        lambda: registry.set_status(job.job_id, Status.COMPLETED),
        lambda: registry.archive([job.job_id]),
        registry.restore,
    ):
        clock.pass_time(1)
        act()
    with refreshed(registry) as history:
        acts = history.acts()
        assert [(act.verb, act.words) for act in reversed(acts) if act.verb != "say"] == [
            ("register", ""),
            ("cancel", "enough"),
            ("retry", ""),
            ("edit", "priority"),
            ("cancel", "after all"),
            ("status --set", "cancelled → completed"),
            ("clean", ""),
            ("clean --undo", ""),
        ]
        assert {act.by for act in acts} == {"ann"}
        assert history.acts(acts[2], limit=2) == acts[3:5]


def test_two_attempts_side_by_side(registry: Registry, clock: FakeClock, tmp_path: Path) -> None:
    job_id = two_attempts(registry, clock, tmp_path)
    output_of(registry, job_id, 1).write_bytes(b"x" * 50_000 + b"the end\n")
    output_of(registry, job_id, 2).unlink()
    found = compare(registry, (job_id, 1), (job_id, 2))
    assert (found.left.outcome, found.right.outcome) == ("error", "running")
    assert (found.left.reason, found.left.exit_code, found.left.elapsed_sec) == ("exit", 3, 185)
    assert found.right.elapsed_sec is None
    assert found.left.output.endswith(b"the end\n")
    assert len(found.left.output) < 50_000
    assert found.right.no_output == f"attempt 2 of job {job_id} has printed nothing"
    assert found.left.no_files
    assert found.left.moments[0].word == "claimed"
    assert found.files == []
    json.dumps(found.to_dict())


def test_what_two_jobs_changed_in_their_repository(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private_git(monkeypatch, tmp_path)
    repository = new_repository(tmp_path / "repository")
    commits = [git(repository, "rev-parse", "HEAD").strip()]
    for words in ("two\nthree\n", "four\n"):
        (repository / "a.txt").write_text(words)
        git(repository, "commit", "-qam", "changed")
        commits.append(git(repository, "rev-parse", "HEAD").strip())
    jobs = []
    for first, last in pairwise(commits):
        job = running(registry, lease=WORKER)
        started = {"workdir": str(repository), "git": {"commit": first}}
        note(registry, job.job_id, AuditEvent.ATTEMPT_STARTED, attempt=1, **started)
        note(registry, job.job_id, AuditEvent.ATTEMPT_ENDED, attempt=1, git={"commit": last})
        registry.finish(job.job_id, Status.COMPLETED, attempt=1)
        jobs.append((job.job_id, 1))
    found = compare(registry, jobs[0], jobs[1])
    assert (found.left.additions, found.left.deletions, found.left.no_files) == (2, 1, "")
    assert (found.right.additions, found.right.deletions) == (1, 2)
    assert [(path, left and left.additions) for path, left, _ in found.files] == [("a.txt", 2)]


def test_an_attempt_that_never_was_is_a_sentence(registry: Registry) -> None:
    job_id = add(registry)
    with pytest.raises(NoAttempt, match="has no attempt 1: there is none"):
        compare(registry, (job_id, 1), (job_id, 2))
    with pytest.raises(JobNotFound):
        compare(registry, ("nobody00", 1), (job_id, 1))


def test_any_line_can_be_gone_to_and_acts_are_searched(
    registry: Registry, clock: FakeClock
) -> None:
    ids = []
    for number in range(20):
        clock.pass_time(1)
        ids.append(add(registry, f"Part {number}", agent=("aider", "codex")[number % 2]))
    clock.pass_time(1)
    registry.request_cancel(ids[4])
    ids.append(ids.pop(4))  # it is the newest now
    with refreshed(registry) as history:
        all_of_them = [row.entry.job_id for row in history.page()]
        assert all_of_them == ids[::-1]
        assert [row.entry.job_id for row in history.page(limit=3, skip=17)] == ids[2::-1]
        assert history.page(limit=3, skip=20) == []
        assert [history.line_of(job_id) for job_id in all_of_them] == list(range(20))
        codex = [row.entry.job_id for row in history.page(text="Codex")]
        assert history.count("Codex") == len(codex) == 10
        assert [history.line_of(job_id, text="codex") for job_id in codex] == list(range(10))
        assert history.line_of(ids[-1], text="codex") is None
        assert history.line_of("nothing1") is None
        assert history.count_acts() == 21
        (act,) = history.acts(text=f"CANCEL {ids[-1]}")
        assert (act.verb, history.count_acts("cancel")) == ("cancel", 1)
        acts = history.acts(limit=5, skip=10)
        assert [history.count_acts(before=one) for one in acts] == list(range(10, 15))


def test_two_who_read_at_once_count_nothing_twice(registry: Registry) -> None:
    first = running(registry, lease=WORKER).job_id
    last = running(registry, lease=WORKER).job_id
    with refreshed(registry) as one, refreshed(registry) as two:
        for job_id in (first, last):
            note(registry, job_id, AuditEvent.ATTEMPT_ENDED, attempt=1, cost=0.5)
        steps = one.refresh()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mam_core.replay.chronicle._JOBS_A_STEP", 1)
            next(steps)  # it has read one, and knows how far the other was read before
        for _ in (*two.refresh(), *steps):
            pass
        assert [row.entry.cost for row in one.page()] == [0.5, 0.5]


def test_an_index_that_another_holds_is_busy_and_can_still_be_looked_at(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mam_core.replay.chronicle._BUSY_SEC", 0.05)
    job_id = add(registry)
    with refreshed(registry) as history:
        place = os.path.join(
            registry.store.audit.path, FOLDER, registry.store.audit.kept_as + ENDING
        )
        other = sqlite3.connect(place, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(HistoryBusy, match="another process"):
                list(history.refresh())
            assert [row.entry.job_id for row in history.page()] == [job_id]
            assert history.is_kept
        finally:
            other.close()
