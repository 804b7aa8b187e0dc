"""What running jobs are shown as, read from a real registry: from log, outbox, lease and panes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.clock import fine_stamp
from mam_core.leases import LeaseTerms
from mam_core.operations.past import past
from mam_core.operations.running_records import RunningRecords
from mam_core.operations.shown import Showing, ShownState, lease_facts
from mam_core.operations.why import why
from mam_core.process_mark import ProcessMark
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.sessions import Session, SessionFolder
from mam_core.tmux.facts import PaneFact, TmuxFailed
from tests.support.clock import FakeClock
from tests.support.jobs import WORKER, add, running


def say(registry: Registry, job: Job, state: AgentState, words: str = "") -> None:
    sign = Sign(state, Channel.HOOK, "PreToolUse", registry.clock.now(), words)
    registry.publish(job.job_id, "state", detail=words, data=sign.to_dict(), attempt=job.attempt)


def relay(registry: Registry) -> None:
    """What a relay does with the outbox once a broker has taken all of it."""
    for post in registry.store.outbox.posts(1000):
        line = {
            "timestamp": fine_stamp(registry.clock.now()),
            "event": "published",
            "job_id": post.job_id,
            "seq": post.seq,
            "said_at": post.said_at,
            "payload": json.loads(post.payload),
        }
        registry.store.audit.append(post.job_id, line)
        registry.store.outbox.done([post])


def state_of(showing: Showing, job: Job) -> str:
    return showing.running()[job.job_id].state


class TestTheLog:
    def test_is_read_wherever_an_event_is(self, registry: Registry) -> None:
        job = running(registry, lease=WORKER)
        showing = Showing(registry)
        assert state_of(showing, job) == "starting"
        say(registry, job, AgentState.WORKING)
        assert state_of(showing, job) == "working", "from the outbox"
        relay(registry)
        assert state_of(showing, job) == "working", "from the log"
        say(registry, job, AgentState.WAITING, "may I?")
        assert showing.running()[job.job_id].words == "may I?"
        relay(registry)
        assert showing.running()[job.job_id].words == "may I?"
        say(registry, job, AgentState.IDLE)
        relay(registry)
        assert state_of(showing, job) == "idle"

    def test_of_a_fresh_reader_says_the_same(self, registry: Registry) -> None:
        job = running(registry, lease=WORKER)
        say(registry, job, AgentState.IDLE)
        relay(registry)
        assert state_of(Showing(registry), job) == "idle"

    def test_that_did_not_change_is_not_read_again(
        self, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = running(registry, lease=WORKER)
        say(registry, job, AgentState.IDLE)
        relay(registry)
        showing = Showing(registry)
        assert state_of(showing, job) == "idle"
        monkeypatch.setattr(os, "pread", lambda *_: pytest.fail("it was read"))
        audit = registry.store.audit
        size = (Path(audit.path) / job.job_id / "events.ndjson").stat().st_size
        assert audit.news(job.job_id, size, 1024) == (size, [])

    def test_that_is_long_is_read_from_its_end(self, registry: Registry) -> None:
        job = running(registry, lease=WORKER)
        line = {"timestamp": "t", "event": "log", "job_id": job.job_id, "text": "x" * 1000}
        for _ in range(20):
            registry.store.audit.append_all(job.job_id, [line] * 10)
        say(registry, job, AgentState.WAITING)
        relay(registry)
        until, lines = registry.store.audit.news(job.job_id, None, 10_000)
        assert len(lines) < 12
        assert all(raw.startswith(b'{"n": ') for raw in lines), "whole lines only"
        assert (
            until == (Path(registry.store.audit.path) / job.job_id / "events.ndjson").stat().st_size
        )
        assert state_of(Showing(registry), job) == "waiting for input"

    def test_with_a_torn_end_waits_for_the_rest(self, registry: Registry) -> None:
        job = running(registry, lease=WORKER)
        path = Path(registry.store.audit.path) / job.job_id / "events.ndjson"
        whole = path.stat().st_size
        with path.open("ab") as file:
            file.write(b'{"n": 9, "event"')
        assert registry.store.audit.news(job.job_id, None, 10_000)[0] == whole

    def test_of_the_attempt_before_says_nothing(self, registry: Registry) -> None:
        """N16"""
        job = running(registry, lease=WORKER)
        say(registry, job, AgentState.WAITING, "old")
        relay(registry)
        showing = Showing(registry)
        assert state_of(showing, job) == "waiting for input"
        registry.finish(job.job_id, Status.ERROR, attempt=1)
        registry.retry(job.job_id)
        again = registry.claim("alpha", lease=WORKER)
        assert again is not None
        assert state_of(showing, again) == "starting"
        assert state_of(Showing(registry), again) == "starting"

    def test_that_is_missing_or_rubbish_harms_nobody(self, registry: Registry) -> None:
        job = running(registry, lease=WORKER)
        path = Path(registry.store.audit.path) / job.job_id / "events.ndjson"
        path.write_bytes(b'[]\n3\n{"event": "published", "payload": "{"}\n\xff\xfe\n')
        assert state_of(Showing(registry), job) == "starting"
        path.unlink()
        assert state_of(Showing(registry), job) == "starting"


class TestAgain:
    """Looks follow each other every second: a record or a log without news is not read again."""

    def test_only_what_has_changed_is_read(
        self, registry: Registry, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        jobs = [running(registry, lease=WORKER, prompt=f"star {number}") for number in range(3)]
        for job in jobs:
            say(registry, job, AgentState.WORKING)
        relay(registry)
        showing = Showing(registry)
        assert set(showing.running()) == {job.job_id for job in jobs}
        clock.pass_time(5)
        showing.running()
        read: list[str] = []
        real_get, real_news = registry.store.get, registry.store.audit.news

        def get(job_id: str) -> Job:
            read.append(f"record {job_id}")
            return real_get(job_id)

        def news(job_id: str, *rest: Any) -> Any:
            read.append(f"log {job_id}")
            return real_news(job_id, *rest)

        with monkeypatch.context() as patched:
            patched.setattr(registry.store, "get", get)
            patched.setattr(registry.store.audit, "news", news)
            showing.running()
            assert read == []
            say(registry, jobs[1], AgentState.WAITING, "may I?")
            relay(registry)
            read.clear()
            assert showing.running()[jobs[1].job_id].words == "may I?"
            assert read == [f"record {jobs[1].job_id}", f"log {jobs[1].job_id}"]

    def test_two_changes_in_one_second_are_both_seen(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        """The stamp of a record has whole seconds, and a renewed lease changes nothing else."""
        job = running(registry, lease=WORKER)
        records = RunningRecords(registry)
        for _ in range(3):
            clock.pass_time(0.2)
            renewed = registry.heartbeat(job.job_id, WORKER, attempt=1)
            assert records.all() == [renewed]

    def test_one_that_has_ended_is_gone(self, registry: Registry, clock: FakeClock) -> None:
        job = running(registry, lease=WORKER)
        showing = Showing(registry)
        clock.pass_time(5)
        assert list(showing.running()) == [job.job_id]
        registry.finish(job.job_id, Status.COMPLETED, attempt=1)
        assert showing.running() == {}


def test_only_running_jobs_are_told(registry: Registry) -> None:
    add(registry)
    assert Showing(registry).running() == {}


class TestLease:
    def test_goes_from_working_to_stale_to_lost(self, registry: Registry, clock: FakeClock) -> None:
        job = running(registry, lease=WORKER)
        say(registry, job, AgentState.WORKING)
        showing = Showing(registry)
        states = []
        for _ in range(4):
            states.append(state_of(showing, job))
            clock.pass_time(12)
        assert states == ["working", "working", "stale", "lost"]

    def test_of_another_host_is_measured_by_the_wall_clock(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        job = running(registry, lease=WORKER)
        assert job.lease is not None
        theirs = job.lease._replace(node="other", boot_id="their boot")
        clock.pass_time(45)
        assert not lease_facts(registry, theirs).is_over
        assert lease_facts(registry, theirs).is_late
        clock.pass_time(20)
        assert lease_facts(registry, theirs).is_over

    def test_of_an_earlier_boot_is_over(self, registry: Registry, clock: FakeClock) -> None:
        job = running(registry, lease=WORKER)
        clock.reboot()
        assert job.lease is not None
        facts = lease_facts(registry, job.lease)
        assert (facts.is_over, facts.age_sec) == (True, None)


def a_pane(job: Job, **fields: Any) -> PaneFact:
    words = ("%1", "claude", 12, False, None, None, "", "tmux:claude", "shell")
    return PaneFact(*words, job.job_id, job.attempt, 80, 24, 1.0, 1.0)._replace(**fields)


def dead_worker() -> LeaseTerms:
    """As a worker names itself; no process has this pid and start time."""
    return LeaseTerms("host:2147483646:1:0", 30.0)


class TestPanes:
    """H10"""

    def test_one_that_is_gone_is_lost_after_two_looks(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        job = running(registry, lease=dead_worker(), agent_session="tmux:claude")
        showing = Showing(registry)
        assert showing.running([a_pane(job)])[job.job_id].state is ShownState.STARTING
        assert showing.running([])[job.job_id].state is ShownState.STARTING, "one miss is none"
        clock.pass_time(1)
        assert showing.running([])[job.job_id].rule == "pane gone"

    def test_one_that_tmux_was_not_asked_for_is_unknown(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        job = running(registry, lease=dead_worker(), agent_session="tmux:claude")
        showing = Showing(registry)
        showing.running([a_pane(job)])
        for _ in range(3):
            clock.pass_time(2)
            assert showing.running(None)[job.job_id].state is ShownState.STARTING

    def test_a_worker_outside_of_tmux_needs_none(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        mark = ProcessMark.of(os.getpid())
        assert mark is not None
        ours = LeaseTerms(f"host:{mark.pid}:{mark.started}:0", 30.0)
        job = running(registry, lease=ours, agent_session="tmux:claude")
        showing = Showing(registry, {"tmux:claude"})
        for _ in range(3):
            clock.pass_time(2)
            assert showing.running([])[job.job_id].state is ShownState.STARTING

    def test_a_job_that_never_had_one_misses_none(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        job = running(registry, lease=dead_worker())
        showing = Showing(registry)
        for _ in range(3):
            clock.pass_time(2)
            assert showing.running([])[job.job_id].state is ShownState.STARTING


class TestWhy:
    def a_session(self, place: Path) -> None:
        words = ("claude", "tmux:claude", "shell", "exec", "/", "/", "2026-06-19T09:30:00Z", "ann")
        SessionFolder(str(place)).put(Session(*words, "host"))

    def test_looks_twice_before_it_says_that_the_pane_is_gone(
        self,
        registry: Registry,
        place: Path,
        clock: FakeClock,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(time, "sleep", clock.pass_time)
        job = running(registry, lease=dead_worker(), agent_session="tmux:claude")
        self.a_session(place)
        looks: list[int] = []

        def panes() -> list[PaneFact]:
            looks.append(1)
            return []

        found = why(registry, job.job_id, registry_path=str(place), panes=panes)
        assert found.shown.rule == "pane gone"
        assert len(looks) == 2

    def test_says_that_tmux_could_not_be_asked(self, registry: Registry, place: Path) -> None:
        job = running(registry, lease=dead_worker(), agent_session="tmux:claude")
        self.a_session(place)

        def panes() -> list[PaneFact]:
            raise TmuxFailed("no tmux here")

        found = why(registry, job.job_id, registry_path=str(place), panes=panes)
        assert found.shown.state is ShownState.STARTING
        assert found.sentences[-1] == "whether its pane is there is unknown: no tmux here"

    def test_does_not_ask_tmux_for_a_job_of_no_session(
        self, registry: Registry, place: Path
    ) -> None:
        job = running(registry, lease=WORKER)
        why(registry, job.job_id, registry_path=str(place), panes=lambda: pytest.fail("asked"))


class TestPast:
    def test_tells_each_change_with_its_witness(self, registry: Registry, clock: FakeClock) -> None:
        job = running(registry, lease=WORKER)
        registry.publish(job.job_id, "started", attempt=1)
        say(registry, job, AgentState.WAITING, "may I?")
        relay(registry)
        say(registry, job, AgentState.WORKING)
        registry.publish(job.job_id, "progress", detail="half", attempt=1)
        clock.pass_time(5)
        registry.request_cancel(job.job_id, "enough")
        registry.finish(job.job_id, Status.CANCELLED, attempt=1, told={"elapsed_sec": 3})
        told = [(it.attempt, it.state, it.channel, it.rule) for it in past(registry, job.job_id)]
        assert told == [
            (None, "pending", "registry", "registered"),
            (1, "running", "registry", "claim"),
            (1, "started", "event", "started"),
            (1, "waiting", "hook", "PreToolUse"),
            (1, "working", "hook", "PreToolUse"),  # which no broker has yet
            (1, "cancelling", "registry", "cancel_requested"),
            (1, "cancelled", "registry", "end"),
        ]

    @pytest.mark.parametrize("is_taken", [True, False])
    def test_has_the_start_before_the_end_of_a_job_that_ran_for_a_moment(
        self, registry: Registry, clock: FakeClock, is_taken: bool
    ) -> None:
        """A broker takes its events, which are dated to the second, after it has ended."""
        job = running(registry, lease=WORKER)
        clock.pass_time(0.1)
        registry.publish(job.job_id, "started", attempt=1)
        clock.pass_time(0.2)
        registry.finish(job.job_id, Status.COMPLETED, attempt=1, told={"elapsed_sec": 0.3})
        clock.pass_time(0.3)
        if is_taken:
            relay(registry)
        told = [it.state for it in past(registry, job.job_id)]
        assert told == ["pending", "running", "started", "completed"]

    def test_tells_the_words_of_a_question(self, registry: Registry) -> None:
        job = running(registry, lease=WORKER)
        say(registry, job, AgentState.WAITING, "may I?")
        assert past(registry, job.job_id)[-1].words == "may I?"
