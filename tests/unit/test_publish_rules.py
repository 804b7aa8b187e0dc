"""How the status follows an event, over every store: one number, one post, one transaction."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from mam_core.discretion import told_detail
from mam_core.errors import InvalidField, JobNotFound, StaleAttempt
from mam_core.events.event import EventName, parse
from mam_core.record_parts import Broker
from mam_core.records import REDACTED, Reason, Status
from mam_core.registry import Registry
from tests.support.clock import FakeClock
from tests.support.handles import close_later
from tests.support.jobs import WORKER, add, running
from tests.support.rows import each_row
from tests.support.stores import STORES


@pytest.fixture(params=list(STORES))
def registry(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Registry:
    return close_later(
        Registry(STORES[request.param](tmp_path)(), clock=clock, actor="ann", node="host")
    )


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def lines(registry: Registry, job_id: str, event: str = "status_changed") -> list[dict[str, Any]]:
    return [line for line in registry.store.audit.events(job_id) if line["event"] == event]


def moves(registry: Registry, job_id: str) -> list[tuple[str, str, str]]:
    return [(line["from"], line["to"], line["cause"]) for line in lines(registry, job_id)]


def payloads(registry: Registry) -> list[dict[str, Any]]:
    return [json.loads(post.payload) for post in registry.store.outbox.posts(1000)]


class TestAnEventIsNumberedAndPosted:
    def test_the_first_is_seq_1_and_has_the_keys_of_the_documents(self, registry: Registry) -> None:
        """G2, G3, A12: schema, number, topic and broker of the record."""
        job_id = add(registry, topic_prefix="lab/a", broker={"host": "b.lan", "port": 1999})
        published = registry.publish(job_id, "progress", detail="half", data={"done": 1})
        (post,) = registry.store.outbox.posts(10)
        assert (post.job_id, post.seq, post.topic) == (job_id, 1, "lab/a/events")
        assert post.broker == Broker("b.lan", 1999)
        assert json.loads(post.payload) == {
            "schema_version": 1,
            "seq": 1,
            "job_id": job_id,
            "attempt": 0,
            "event": "progress",
            "timestamp": published.event.timestamp,
            "detail": "half",
            "data": {"done": 1},
        }
        assert registry.get(job_id).last_seq == published.seq == 1

    def test_numbers_go_on_across_attempts_and_publishers(self, registry: Registry) -> None:
        """G3: with `next_seq` of other scripts in between."""
        job_id = add(registry)
        first = registry.publish(job_id, "started").seq
        registry.next_seq(job_id)
        registry.publish(job_id, "error")
        registry.retry(job_id)
        assert (first, registry.publish(job_id, "started").seq) == (1, 4)

    def test_of_each_job_the_oldest_come_first(self, registry: Registry) -> None:
        jobs = [add(registry), add(registry, "another")]
        for _ in range(12):
            for job_id in jobs:
                registry.publish(job_id, "progress")
        posts = registry.store.outbox.posts(1000)
        for job_id in jobs:
            assert [post.seq for post in posts if post.job_id == job_id] == list(range(1, 13))
        some = registry.store.outbox.posts(1000, {jobs[0]: 10})
        assert [post.seq for post in some if post.job_id == jobs[0]] == [11, 12]

    def test_a_job_with_a_token_signs(self, registry: Registry) -> None:
        """K3."""
        job_id = add(registry, auth_token="a-token-of-43-letters-or-so")
        registry.publish(job_id, "progress")
        message = parse(registry.store.outbox.posts(1)[0].payload)
        assert message.is_from("a-token-of-43-letters-or-so")
        assert not message.is_from("another")

    def test_a_job_that_is_not_there_has_no_events(self, registry: Registry) -> None:
        """G27."""
        add(registry)
        with pytest.raises(JobNotFound):
            registry.publish("nobody", "progress")
        assert registry.store.outbox.posts(10) == []

    @each_row("name", ["", "Started", "done", "x" * 100])
    def test_a_word_that_is_no_event_is_refused(self, registry: Registry, name: str) -> None:
        job_id = add(registry)
        with pytest.raises(InvalidField, match="is no event"):
            registry.publish(job_id, name)
        assert registry.get(job_id).last_seq == 0

    def test_an_event_that_is_too_long_changes_nothing(self, registry: Registry) -> None:
        job_id = add(registry)
        with pytest.raises(InvalidField, match="1 MB"):
            registry.publish(job_id, "started", detail="x" * 2**20)
        assert registry.get(job_id).status is Status.PENDING
        assert registry.get(job_id).last_seq == 0


class TestTheStatusFollows:
    def test_started_is_an_unsupervised_claim(self, registry: Registry) -> None:
        """G13, F7, decision 14."""
        job_id = add(registry)
        job = registry.publish(job_id, "started").job
        assert (job.status, job.attempt, job.lease, job.node) == (Status.RUNNING, 1, None, "host")
        assert moves(registry, job_id) == [("pending", "running", "publish")]
        assert payloads(registry)[0]["attempt"] == 1

    def test_started_again_changes_nothing(self, registry: Registry) -> None:
        job = running(registry)
        after = registry.publish(job.job_id, "started").job
        assert (after.status, after.attempt) == (Status.RUNNING, 1)
        assert len(lines(registry, job.job_id)) == 1

    @each_row(
        ("event", "status", "reason"),
        [("completed", Status.COMPLETED, None), ("error", Status.ERROR, Reason.AGENT)],
    )
    def test_an_unsupervised_job_ends(
        self, registry: Registry, event: str, status: Status, reason: Reason | None
    ) -> None:
        """G13, decision 15."""
        job = running(registry)
        after = registry.publish(job.job_id, event, detail="so it is").job
        assert (after.status, after.reason, after.detail) == (status, reason, "so it is")
        assert moves(registry, job.job_id)[-1] == ("running", str(status), "publish")

    def test_a_pending_job_is_claimed_and_ended_at_once(self, registry: Registry) -> None:
        """Both lines stand, each with its revision."""
        job_id = add(registry)
        job = registry.publish(job_id, "completed").job
        assert (job.status, job.attempt, job.last_seq) == (Status.COMPLETED, 1, 1)
        assert moves(registry, job_id) == [
            ("pending", "running", "publish"),
            ("running", "completed", "publish"),
        ]
        revisions = [line["revision"] for line in lines(registry, job_id)]
        assert revisions == [2, 3]
        assert registry.get(job_id).revision == 3

    @each_row("event", sorted(set(EventName) - {"started", "completed", "error"}))
    def test_other_words_move_nothing(self, registry: Registry, event: str) -> None:
        """G13."""
        waiting, busy = add(registry, agent_session="x"), running(registry).job_id
        for job_id in (waiting, busy):
            before = registry.get(job_id)
            after = registry.publish(job_id, event).job
            assert (after.status, after.attempt) == (before.status, before.attempt)

    def test_on_a_leased_job_it_is_a_report(self, registry: Registry) -> None:
        """Decision 15: the worker checks and ends."""
        job = running(registry, lease=WORKER)
        for event in ("started", "completed", "error"):
            after = registry.publish(job.job_id, event, attempt=1).job
            assert (after.status, after.lease is not None) == (Status.RUNNING, True)
        assert [each["event"] for each in payloads(registry)] == ["started", "completed", "error"]

    @pytest.mark.parametrize("ending", ["completed", "error"])
    def test_a_job_that_has_ended_stays_so_and_the_news_is_told(
        self, registry: Registry, ending: str
    ) -> None:
        """G14: late, doubled and contrary events."""
        job_id = running(registry).job_id
        ended = registry.publish(job_id, ending).job
        for late in ("started", "completed", "error", "progress"):
            after = registry.publish(job_id, late).job
            assert (after.status, after.attempt) == (ended.status, 1)
        assert [each["seq"] for each in payloads(registry)] == [1, 2, 3, 4, 5]

    def test_a_cancelled_job_is_not_revived(self, registry: Registry) -> None:
        job_id = add(registry)
        registry.request_cancel(job_id)
        assert registry.publish(job_id, "started").job.status is Status.CANCELLED


class TestTheFence:
    @pytest.mark.parametrize("attempt", [0, 1, 3])
    def test_a_word_of_another_attempt_is_refused_and_audited(
        self, registry: Registry, attempt: int
    ) -> None:
        """Decision 6."""
        job_id = running(registry).job_id
        registry.publish(job_id, "error", attempt=1)
        registry.retry(job_id)
        assert registry.publish(job_id, "started").job.attempt == 2
        before = registry.get(job_id)
        with pytest.raises(StaleAttempt):
            registry.publish(job_id, "completed", attempt=attempt)
        assert registry.get(job_id) == before
        assert len(registry.store.outbox.posts(10)) == 2
        assert lines(registry, job_id, "refused")[-1]["attempt"] == attempt

    def test_a_word_of_an_attempt_that_is_over_is_refused(self, registry: Registry) -> None:
        job_id = running(registry).job_id
        registry.publish(job_id, "completed", attempt=1)
        with pytest.raises(StaleAttempt, match="over"):
            registry.publish(job_id, "error", attempt=1)
        assert registry.get(job_id).status is Status.COMPLETED

    def test_checks_that_outlast_their_attempt_end_no_other(
        self, registry: Registry, workdir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Decision 7 meets decision 6: judged for attempt 1, and now it is attempt 2."""
        from mam_core.work import validation

        job_id = running(registry, workdir=str(workdir), validate="true").job_id

        def slow(*_: object, **__: object) -> validation.Verdict:
            registry.requeue(job_id, Reason.LOST, attempt=1)
            registry.publish(job_id, "started")
            return validation.Verdict(())

        monkeypatch.setattr(validation, "judge", slow)
        with pytest.raises(StaleAttempt):
            registry.publish(job_id, "completed")
        assert (registry.get(job_id).status, registry.get(job_id).attempt) == (Status.RUNNING, 2)


class TestCompletedIsEarned:
    def test_a_missing_artifact_ends_the_job_as_an_error(
        self, registry: Registry, workdir: Path
    ) -> None:
        """Decision 7, J4: the news is what the agent said, the status what is so."""
        job_id = running(registry, workdir=str(workdir), expected_artifacts=["out.txt"]).job_id
        published = registry.publish(job_id, "completed", detail="done!")
        assert published.refused == "artifact out.txt is missing"
        job = registry.get(job_id)
        assert (job.status, job.reason) == (Status.ERROR, Reason.VALIDATION)
        assert job.detail == published.refused
        (line,) = [line for line in lines(registry, job_id) if line["to"] == "error"]
        assert line["checks"][0]["passed"] is False
        assert payloads(registry)[-1]["event"] == "completed"

    def test_with_its_artifact_and_its_check_it_is_completed(
        self, registry: Registry, workdir: Path
    ) -> None:
        """Decision 7: both are in the audit log."""
        job_id = add(
            registry,
            workdir=str(workdir),
            expected_artifacts=["out.txt"],
            validate='grep -q stars "$MAM_ARTIFACTS" && echo "job $MAM_JOB_ID, $MAM_ATTEMPT"',
        )
        (workdir / "out.txt").write_text("all stars")
        assert registry.publish(job_id, "completed").job.status is Status.COMPLETED
        checks = lines(registry, job_id)[-1]["checks"]
        assert [check["passed"] for check in checks] == [True, True]
        assert checks[1]["output"] == f"job {job_id}, 1\n"

    def test_an_error_needs_no_checks(self, registry: Registry, workdir: Path) -> None:
        job_id = running(registry, workdir=str(workdir), validate="exit 1").job_id
        assert registry.publish(job_id, "error").job.reason is Reason.AGENT

    def test_on_a_leased_job_nothing_is_checked(self, registry: Registry, workdir: Path) -> None:
        trace = workdir / "trace"
        job = running(registry, lease=WORKER, workdir=str(workdir), validate=f"touch {trace}")
        registry.publish(job.job_id, "completed", attempt=1)
        assert not trace.exists()

    def test_a_contract_that_changes_meanwhile_is_checked_again(
        self, registry: Registry, workdir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from mam_core.work import validation

        job_id = add(registry, workdir=str(workdir), validate="true")
        judge, judged = validation.judge, []

        def edited_meanwhile(job: Any, **more: Any) -> validation.Verdict:
            judged.append(job.validate)
            if len(judged) == 1:
                registry.edit(job_id, {"validate": "exit 3"})
            return judge(job, **more)

        monkeypatch.setattr(validation, "judge", edited_meanwhile)
        assert registry.publish(job_id, "completed").job.reason is Reason.VALIDATION
        assert judged == ["true", "exit 3"]


class TestNothingIsGivenAway:
    def test_secrets_and_places_are_not_in_the_payload(
        self, registry: Registry, workdir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """G23, K5, decision 10."""
        monkeypatch.setenv("HOME", "/houses/ann")
        job_id = add(
            registry,
            workdir=str(workdir),
            auth_token="the-token-of-the-job",
            broker={"host": "b.lan", "username": "u", "password": "hunter2"},
        )
        registry.publish(
            job_id,
            "error",
            detail=f"the-token-of-the-job in {workdir}/out.txt, not in {workdir}2 nor /houses/anna",
            data={
                "log": "/houses/ann/x",
                "hunter2": ["my hunter2", {"deep": str(workdir)}],
                "n": 1,
            },
        )
        payload = payloads(registry)[0]
        # G23 wants no absolute path at all: those of others keep their last name, which helps.
        assert payload["detail"] == f"{REDACTED} in ./out.txt, not in …/work2 nor …/anna"
        data = payload["data"]
        assert data == {"log": "~/x", REDACTED: [f"my {REDACTED}", {"deep": "."}], "n": 1}
        assert registry.get(job_id).detail == payload["detail"]
        history = b"".join(registry.store.audit.lines(job_id))
        assert b"the-token" not in history
        assert b"hunter2" not in history

    PROMPT = "Move the invoices to the new table.\nTell nobody about the second ledger.\nok"

    @each_row(
        ("said", "told"),
        [
            ("with sk-ant-REDACTED now", "with [hidden] now"),
            ("OPENAI_API_KEY=abc123 is set", "OPENAI_API_KEY=[hidden] is set"),
            (
                "curl -H 'Authorization: Bearer abcdef123'",
                "curl -H 'Authorization: Bearer [hidden]",
            ),
            ("postgresql://ann:pw@db/jobs", "postgresql://[hidden]@db/jobs"),
            ("wrote /srv/data/ann/out.csv", "wrote …/out.csv"),
            ("see file:///opt/cli/x.js", "see …/x.js"),
            ("see https://example.org/a/b", "see https://example.org/a/b"),
            ("Tell nobody about the second ledger.", "[prompt]"),
            ("I was told: Tell nobody about the second ledger.", "I was told: [prompt]"),
            ("the invoices to the new", "[prompt]"),
            ("3 of 10 files, src/a/b.py is done", "3 of 10 files, src/a/b.py is done"),
            ("ok", "ok"),
        ],
    )
    def test_what_an_agent_publishes_itself_is_looked_through_as_what_it_prints(
        self, registry: Registry, said: str, told: str
    ) -> None:
        """G23: also where nobody but the text itself says that it is a key, a place, the prompt."""
        job_id = add(registry, self.PROMPT)
        registry.publish(job_id, "error", detail=said)
        (post,) = registry.store.outbox.posts(1)
        detail = json.loads(post.payload)["detail"]
        registry.store.outbox.done([post])
        assert detail.startswith(told)
        assert registry.get(job_id).detail == detail

    def test_nor_do_its_data_give_it_away(self, registry: Registry) -> None:
        job_id = add(registry, self.PROMPT)
        data: dict[str, Any] = {
            "token": "abcdef",
            "tokens": {"input": 5, "output": 7},
            "DB-Password": "x",
            "list": ["/srv/data/ann/out.csv", {"api_key": "k", "n": 1.5, "none": None}],
            "why": "because: Tell nobody about the second ledger.",
            "new table": "to the new table",
        }
        registry.publish(job_id, "progress", data=data)
        assert payloads(registry)[0]["data"] == {
            "token": "[hidden]",
            "tokens": {"input": 5, "output": 7},
            "DB-Password": "[hidden]",
            "list": ["…/out.csv", {"api_key": "[hidden]", "n": 1.5, "none": None}],
            "why": "because: [prompt]",
            "new table": "to the new table",  # a value may well be one that the prompt names
        }

    @pytest.mark.parametrize(
        "part",
        ["eyJ-", "eyJaaaaaaaa.", "://a:", "/a@", "sk-", "token:", "://" + ":" * 400, "@/", "/a"],
    )
    def test_no_text_keeps_the_registry_locked_for_long(self, part: str) -> None:
        """A pattern that tries every end from every beginning would take hours for these."""
        began = time.thread_time()
        told_detail(self.PROMPT, part * (2**20 // len(part)))
        assert time.thread_time() - began < 30

    def test_a_job_that_works_in_the_root_hides_no_slashes(self, registry: Registry) -> None:
        job_id = add(registry, workdir="/")
        registry.publish(job_id, "progress", detail="a/b in /etc and /")
        assert payloads(registry)[0]["detail"] == "a/b in /etc and /"

    def test_the_post_goes_where_the_caller_says(self, registry: Registry) -> None:
        """G5: what the environment corrects, the relay cannot know."""
        job_id = add(registry)
        registry.publish(job_id, "progress", route=lambda broker: broker._replace(tls=True))
        assert registry.store.outbox.posts(1)[0].broker.tls
        assert not registry.get(job_id).broker.tls
