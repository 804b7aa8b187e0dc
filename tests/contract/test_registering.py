"""Registering: what a new record holds, and what is refused before anything is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mam_core.errors import InvalidField, TransitionRefused
from mam_core.records import MAX_PROMPT_BYTES, Reason, Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from tests.contract.conftest import MakeRegistry
from tests.support.clock import FakeClock
from tests.support.jobs import add, claim_all, request
from tests.support.rows import each_row

JR_KEYS = [
    "schema_version",
    "job_id",
    "status",
    "created_at",
    "updated_at",
    "prompt",
    "agent",
    "agent_session",
    "broker",
    "topic_prefix",
    "timeout_sec",
    "idle_timeout_sec",
    "expected_artifacts",
    "last_seq",
    "auth_token",
]


def all_ids(registry: Registry) -> list[str]:
    return [row.job_id for row in registry.store.find(Query())[0]]


class TestANewRecord:
    def test_has_the_fifteen_keys_first_and_the_documents_defaults(
        self, registry: Registry
    ) -> None:
        """A6, A7, A8, A9, A11, A12, A13, E2."""
        job_id = add(registry, "count the stars")
        record = registry.get(job_id).to_dict()
        assert list(record)[:15] == JR_KEYS
        assert {name: record[name] for name in JR_KEYS} == {
            "schema_version": 1,
            "job_id": job_id,
            "status": "pending",
            "created_at": "2026-06-19T09:30:00Z",
            "updated_at": "2026-06-19T09:30:00Z",
            "prompt": "count the stars",
            "agent": "shell",
            "agent_session": "alpha",
            "broker": {
                "host": "127.0.0.1",
                "port": 1883,
                "tls": False,
                "username": None,
                "password": None,
            },
            "topic_prefix": f"python/mqtt/jobs/{job_id}",
            "timeout_sec": 3600,
            "idle_timeout_sec": 120,
            "expected_artifacts": (),
            "last_seq": 0,
            "auth_token": None,
        }

    def test_has_a_short_id_that_is_safe_as_a_name(self, registry: Registry) -> None:
        """A10."""
        ids = [answer.job_id for answer in registry.register([request(str(i)) for i in range(60)])]
        assert len(set(ids)) == 60
        assert all(re.fullmatch(r"[a-z0-9]{8}", job_id) for job_id in ids)

    def test_keeps_everything_that_was_asked_for(self, registry: Registry) -> None:
        """A6, A12, A13, A14 and decision 5."""
        parent = add(registry, "first")
        asked: dict[str, Any] = {
            "model": "big",
            "timeout_sec": 60,
            "idle_timeout_sec": 5.5,
            "workdir": "/",
            "expected_artifacts": ["out.txt", "a/b"],
            "validate": "test -s out.txt",
            "after": [parent, parent],
            "group": "night",
            "priority": 7,
            "key": "nightly",
            "max_attempts": 3,
            "memory_max": "8G",
            "max_cost": 2.5,
            "max_tokens": 200_000,
            "not_before": "+10m",
            "topic_prefix": "lab/one",
            "broker": {"host": "broker.lan", "port": 8883, "tls": True, "password": "hidden"},
            "auth_token": True,
        }
        prompt = "별을 세어라… \"quoted\" 'so'\n\tlast line\0\U0001f600"
        job = registry.get(add(registry, prompt, **asked))
        assert job.prompt == prompt
        assert (job.model, job.timeout_sec, job.idle_timeout_sec) == ("big", 60, 5.5)
        assert (job.workdir, job.validate) == ("/", "test -s out.txt")
        assert job.expected_artifacts == ("out.txt", "a/b")
        assert job.after == (parent,)
        assert (job.group, job.priority, job.key, job.max_attempts) == ("night", 7, "nightly", 3)
        assert job.memory_max == 8 * 2**30
        assert (job.max_cost, job.max_tokens) == (2.5, 200_000)
        assert job.not_before == "2026-06-19T09:40:00Z"
        assert job.events_topic == "lab/one/events"
        assert (job.broker.host, job.broker.port, job.broker.tls) == ("broker.lan", 8883, True)
        assert job.auth_token is not None
        assert len(job.auth_token) >= 32

    def test_reads_the_same_through_a_second_handle(self, make_registry: MakeRegistry) -> None:
        """A15: everything is in the store, nothing in the process."""
        first, second = make_registry(), make_registry()
        job_id = add(first, "shared")
        assert second.get(job_id) == first.get(job_id)
        assert second.store.raw(job_id) == first.store.raw(job_id)


class TestOrder:
    def test_fifty_jobs_of_one_second_come_out_as_they_went_in(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        """C6 and decision 27: the clock stands still, the order does not."""
        ids = [add(registry, f"job {i}") for i in range(50)]
        assert all_ids(registry) == ids
        assert claim_all(registry) == ids

    def test_order_goes_on_when_the_clock_is_set_back(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        """C6."""
        first = add(registry, "before the step")
        clock.wall -= 3600
        second = add(registry, "after the step")
        assert claim_all(registry) == [first, second]

    def test_a_bulk_batch_keeps_the_order_of_its_lines(self, registry: Registry) -> None:
        answers = registry.register([request(f"line {i}") for i in range(40)])
        assert claim_all(registry) == [answer.job_id for answer in answers]


class TestKeys:
    def test_the_same_key_answers_with_the_live_job(self, registry: Registry) -> None:
        """Decision 22."""
        first = registry.register([request("one", key="nightly")])[0]
        again = registry.register([request("two", key="nightly")])[0]
        assert not first.existed
        assert (again.job_id, again.existed) == (first.job_id, True)
        assert registry.get(first.job_id).prompt == "one"
        assert all_ids(registry) == [first.job_id]

    def test_the_same_key_twice_in_one_batch_is_one_job(self, registry: Registry) -> None:
        """Decision 22: a repeated line of a bulk file costs nothing."""
        answers = registry.register(
            [request("a", key="k"), request("b"), request("c", key="k"), request("d", key="other")]
        )
        assert [answer.existed for answer in answers] == [False, False, True, False]
        assert answers[2].job_id == answers[0].job_id
        assert len(all_ids(registry)) == 3

    @each_row("status", [Status.COMPLETED, Status.ERROR, Status.CANCELLED])
    def test_the_key_of_an_ended_job_is_free_again(
        self, registry: Registry, status: Status
    ) -> None:
        old = add(registry, key=f"nightly-{status}")
        registry.set_status(old, status)
        new = registry.register([request(key=f"nightly-{status}")])[0]
        assert not new.existed
        assert new.job_id != old

    def test_a_running_job_still_holds_its_key(self, registry: Registry) -> None:
        old = add(registry, key="nightly")
        registry.claim("alpha")
        assert registry.register([request(key="nightly")])[0] == (old, True, None)


class TestTwins:
    def test_the_same_label_and_prompt_is_registered_and_told(self, registry: Registry) -> None:
        """Decision 22: a warning, no refusal."""
        first = add(registry, "count")
        second = registry.register([request("count")])[0]
        assert (second.existed, second.twin) == (False, first)
        assert len(all_ids(registry)) == 2

    def test_another_label_or_an_ended_job_is_no_twin(self, registry: Registry) -> None:
        ended = add(registry, "count")
        registry.request_cancel(ended)
        add(registry, "count", agent_session="beta")
        assert registry.register([request("count")])[0].twin is None

    def test_twins_inside_one_batch_are_told_too(self, registry: Registry) -> None:
        """Decision 22: both lines are live once the batch stands."""
        first, second = registry.register([request("count"), request("count")])
        assert second.twin == first.job_id


class TestRefusals:
    @each_row(
        ("fields", "named"),
        [
            ({"prompt": ""}, "prompt: it is empty"),
            ({"prompt": 5}, "prompt: it must be a text"),
            ({"agent": ""}, "agent"),
            ({"agent_session": "a\nb"}, "agent_session"),
            ({"agent_session": "x" * 201}, "agent_session"),
            ({"timeout_sec": 0}, "timeout_sec"),
            ({"timeout_sec": -1}, "timeout_sec"),
            ({"timeout_sec": float("nan")}, "timeout_sec"),
            ({"timeout_sec": float("inf")}, "timeout_sec"),
            ({"timeout_sec": 10**400}, "timeout_sec"),
            ({"timeout_sec": True}, "timeout_sec"),
            ({"timeout_sec": "60"}, "timeout_sec"),
            ({"idle_timeout_sec": 0}, "idle_timeout_sec"),
            ({"workdir": "/no/such/folder"}, "workdir"),
            ({"expected_artifacts": ["../out"]}, "expected_artifacts"),
            ({"expected_artifacts": ["/etc/passwd"]}, "expected_artifacts"),
            ({"expected_artifacts": ["a/../../b"]}, "expected_artifacts"),
            ({"expected_artifacts": [""]}, "expected_artifacts"),
            ({"expected_artifacts": "out"}, "expected_artifacts"),
            ({"validate": "  "}, "validate"),
            ({"after": ["../x"]}, "after"),
            ({"after": ["nosuchjob"]}, "after: there is no job nosuchjob"),
            ({"priority": 1.5}, "priority"),
            ({"priority": 10**7}, "priority"),
            ({"max_attempts": 0}, "max_attempts"),
            ({"memory_max": "8Q"}, "memory_max"),
            ({"memory_max": 0}, "memory_max"),
            ({"max_cost": 0}, "max_cost"),
            ({"max_cost": -1}, "max_cost"),
            ({"max_cost": float("nan")}, "max_cost"),
            ({"max_cost": float("inf")}, "max_cost"),
            ({"max_cost": 10**400}, "max_cost"),
            ({"max_cost": "2"}, "max_cost"),
            ({"max_cost": True}, "max_cost"),
            ({"max_tokens": 0}, "max_tokens"),
            ({"max_tokens": 1.5}, "max_tokens"),
            ({"max_tokens": True}, "max_tokens"),
            ({"resume": "session-1"}, "'resume' cannot be set"),
            ({"agent_session_id": "session-1"}, "'agent_session_id' cannot be set"),
            ({"losses": 0}, "'losses' cannot be set"),
            ({"quota_hits": 0}, "'quota_hits' cannot be set"),
            ({"not_before": "tomorrow"}, "not_before"),
            ({"topic_prefix": "a/+/b"}, "topic_prefix"),
            ({"topic_prefix": "a/#"}, "topic_prefix"),
            ({"topic_prefix": "/a"}, "topic_prefix"),
            ({"broker": {"hots": "x"}}, "broker: 'hots'"),
            ({"broker": {"port": 70000}}, "broker"),
            ({"auth_token": "short"}, "auth_token"),
            ({"attempt": 3}, "'attempt' cannot be set"),
            ({"status": "running"}, "'status' cannot be set"),
        ],
    )
    def test_a_bad_value_is_named_and_nothing_is_written(
        self, registry: Registry, fields: dict[str, Any], named: str
    ) -> None:
        with pytest.raises(InvalidField, match=re.escape(named)):
            registry.register([request() | fields])
        assert all_ids(registry) == []

    @each_row("missing", ["prompt", "agent", "agent_session"])
    def test_what_is_missing_is_named(self, registry: Registry, missing: str) -> None:
        asked = request()
        del asked[missing]
        with pytest.raises(InvalidField, match=f"{missing}: it is missing"):
            registry.register([asked])

    def test_one_bad_line_of_a_batch_undoes_the_batch(self, registry: Registry) -> None:
        """All or nothing: also when the fault shows only inside the transaction."""
        good = [request(f"job {i}") for i in range(20)]
        with pytest.raises(InvalidField):
            registry.register([*good, request(timeout_sec=0)])
        with pytest.raises(InvalidField, match="there is no job nosuchjob"):
            registry.register([*good, request(after=["nosuchjob"])])
        assert all_ids(registry) == []
        assert registry.store.audit.job_ids() == []

    def test_a_prompt_of_exactly_one_mebibyte_fits_and_one_more_byte_names_the_limit(
        self, registry: Registry
    ) -> None:
        """A14 and the limit of the issue: bytes are counted, not characters."""
        full = "가" * (MAX_PROMPT_BYTES // 3) + "x" * (MAX_PROMPT_BYTES % 3)
        assert registry.get(add(registry, full)).prompt == full
        with pytest.raises(InvalidField, match="1048577 bytes; the limit is 1048576"):
            add(registry, full + "x")

    def test_whatever_is_accepted_can_be_read_again(self, registry: Registry) -> None:
        """A field without a limit must not make a record that its own store cannot read."""
        huge = "true #" + "x" * (17 * 1024 * 1024)
        try:
            job_id = add(registry, validate=huge)
        except InvalidField:
            return
        assert registry.get(job_id).validate == huge

    def test_no_reason_is_given_to_a_job_that_is_new(self, registry: Registry) -> None:
        job = registry.get(add(registry))
        assert (job.reason, job.detail, job.attempt, job.failures) == (None, None, 0, 0)
        assert Reason("lost") is Reason.LOST


class TestArtifacts:
    """Decision 22: two live jobs must not be judged by each other's work."""

    def test_one_file_is_written_by_one_live_job(self, registry: Registry, tmp_path: Path) -> None:
        here = {"workdir": str(tmp_path)}
        first = add(registry, expected_artifacts=["out.md"], **here)
        with pytest.raises(TransitionRefused, match=first):
            add(registry, expected_artifacts=["./out.md"], **here)
        registry.request_cancel(first)
        assert add(registry, expected_artifacts=["out.md"], **here)

    def test_inside_one_batch_too(self, registry: Registry, tmp_path: Path) -> None:
        wanted = request("count", workdir=str(tmp_path), expected_artifacts=["out.md"])
        with pytest.raises(TransitionRefused):
            registry.register([wanted, wanted])
        assert registry.store.find(Query()) == ([], [])
        assert len(registry.register([wanted, wanted], allow_collision=True)) == 2

    def test_the_same_name_elsewhere_is_another_file(
        self, registry: Registry, tmp_path: Path
    ) -> None:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            add(registry, expected_artifacts=["out.md"], workdir=str(tmp_path / name))
