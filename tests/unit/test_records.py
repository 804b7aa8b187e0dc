"""The record: which ids are ids, which changes are changes, and what survives the disk."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam_core.errors import BadJobId, UnreadableRecord
from mam_core.records import DISK_ORDER, REDACTED, TRANSITIONS, Job, Reason, Status, check_job_id
from mam_core.summaries import Summary, claim_order, moment_of
from tests.support.jobs import a_full_job
from tests.support.rows import each_row

LETTERS = string.ascii_letters + string.digits
GOOD_ID = st.text(LETTERS + "_-", min_size=1, max_size=64).filter(lambda text: text[0] in LETTERS)
NO_PART_OF_AN_ID = [*"/\\.\0\n +#$%:*?'\"`~", "..", "../", "\u200b", "\ud800", "ａ", "x" * 65]
EVERY_CHARACTER = st.characters(exclude_categories=())


class TestIds:
    @given(GOOD_ID)
    def test_a_good_id_is_answered_as_it_is(self, job_id: str) -> None:
        assert check_job_id(job_id) is job_id

    @settings(max_examples=1000)
    @given(
        st.text(LETTERS, max_size=70),
        st.sampled_from(NO_PART_OF_AN_ID) | st.characters(exclude_characters=LETTERS + "_-"),
        st.text(LETTERS, max_size=70),
    )
    def test_a_thousand_bad_ids_are_refused_in_one_short_line(
        self, before: str, bad: str, after: str
    ) -> None:
        """A10."""
        with pytest.raises(BadJobId) as refusal:
            check_job_id(before + bad + after)
        assert "\n" not in refusal.value.message
        assert len(refusal.value.message) < 700

    @given(st.none() | st.integers() | st.binary() | st.lists(st.text()))
    def test_what_is_no_text_is_no_id(self, job_id: Any) -> None:
        with pytest.raises(BadJobId):
            check_job_id(job_id)

    @each_row("job_id", ["", "..", "../x", "a/b", "-a", "_a", "a\n", "a" * 65, "é"])
    def test_the_ones_that_people_try(self, job_id: str) -> None:
        """A10."""
        with pytest.raises(BadJobId, match="is no job id"):
            check_job_id(job_id)


class TestTransitions:
    def test_the_table_knows_every_status(self) -> None:
        assert set(TRANSITIONS) == set(Status)

    def test_what_the_engine_may_do_by_itself(self) -> None:
        """Decision 4; G14: nothing leaves `completed` but by a person's hand."""
        allowed = {(old, new) for old, news in TRANSITIONS.items() for new in news}
        p, r, c, e, x = Status
        assert allowed == {(p, r), (p, x), (r, c), (r, e), (r, x), (r, p), (e, p), (x, p)}

    def test_ended_and_live_share_the_statuses_out(self) -> None:
        assert [status.is_live for status in Status] == [True, True, False, False, False]
        assert all(status.is_live != status.is_ended for status in Status)


class TestOnDisk:
    def test_a_full_record_survives(self) -> None:
        job = a_full_job()
        assert Job.from_dict(job.to_dict()) == job

    def test_a_record_of_exactly_the_fifteen_keys_is_valid(self) -> None:
        """A6, decision 5."""
        fifteen = {name: a_full_job().to_dict()[name] for name in DISK_ORDER[:15]}
        job = Job.from_dict(fifteen)
        assert (job.attempt, job.max_attempts, job.after, job.lease) == (0, 1, (), None)
        assert list(job.to_dict())[:15] == list(fifteen)

    def test_unknown_fields_come_last_and_unchanged(self) -> None:
        """Decision 5: also an unknown key of broker and lease, and one called extra."""
        data = a_full_job().to_dict()
        data["lease"]["zone"] = "x"
        data |= {"extra": {"a": 1}, "zebra": [1, {"b": None}]}
        again = Job.from_dict(data).to_dict()
        assert again == data
        assert list(again)[-3:] == ["from_the_future", "extra", "zebra"]
        assert again["broker"]["keepalive"] == 30

    @each_row("version", [0, 2, "1", 1.5, True, [], {}, 10**30])
    def test_another_schema_version_is_named(self, version: Any) -> None:
        """A7."""
        with pytest.raises(UnreadableRecord, match="schema_version"):
            Job.from_dict(a_full_job().to_dict() | {"schema_version": version})

    @pytest.mark.parametrize("name", ["schema_version", "job_id", "status"])
    def test_what_is_no_record_at_all_is_said_to_be_none(self, name: str) -> None:
        data = a_full_job().to_dict()
        del data[name]
        with pytest.raises(UnreadableRecord, match=f"it is no job record: it has no {name}"):
            Job.from_dict(data)

    @each_row(
        ("name", "value"),
        [
            ("job_id", "../x"),
            ("status", "done"),
            ("status", ["pending"]),
            ("prompt", None),
            ("timeout_sec", 0),
            ("timeout_sec", "60"),
            ("timeout_sec", True),
            ("timeout_sec", float("nan")),
            ("expected_artifacts", "one"),
            ("expected_artifacts", [1]),
            ("last_seq", -1),
            ("last_seq", 1.0),
            ("broker", []),
            ("broker", {"port": "1883"}),
            ("broker", {"tls": 1}),
            ("lease", {"owner": "x"}),
            ("lease", {"owner": "x", "ttl_sec": 0}),
            ("lease", {"ttl_sec": 5}),
            ("after", {"a": 1}),
            ("attempt", None),
            ("order", "1"),
            ("reason", 5),
        ],
    )
    def test_a_wrong_value_is_named_by_its_key(self, name: str, value: Any) -> None:
        with pytest.raises(UnreadableRecord, match="it"):
            Job.from_dict(a_full_job().to_dict() | {name: value})

    def test_a_reason_of_another_tool_is_kept_as_a_word(self) -> None:
        data = a_full_job().to_dict() | {"reason": "gremlins", "detail": None}
        edited = Job.from_dict(data)
        assert (edited.reason, edited.detail) == (Reason.EDITED, "gremlins")
        del data["checksum"]
        theirs = Job.from_dict(data)
        assert (theirs.reason, theirs.detail) == (Reason.OTHER, "gremlins")

    def test_secrets_are_marked_and_the_rest_is_not(self) -> None:
        """Decision 10."""
        shown = a_full_job().redacted()
        assert (shown["auth_token"], shown["broker"]["password"]) == (REDACTED, REDACTED)
        assert a_full_job().to_dict()["auth_token"] == "a-token-of-the-job"
        plain = a_full_job().evolve(auth_token=None).redacted()
        assert plain["auth_token"] is None


class TestOrder:
    def test_a_foreign_record_takes_its_place_by_its_time(self) -> None:
        """C1, decision 27: the scripts of the original write no order."""
        ours = a_full_job()
        assert claim_order(ours) == 1781861400000000
        assert claim_order(ours.evolve(order=None)) == 1781861400000000
        later = ours.evolve(order=None, created_at="2026-06-19T18:30:01+09:00")
        assert claim_order(later) == 1781861401000000

    @given(st.text(EVERY_CHARACTER, max_size=40))
    def test_a_time_that_nobody_can_read_costs_nothing_but_the_place(self, created: str) -> None:
        assert isinstance(claim_order(a_full_job().evolve(order=None, created_at=created)), int)

    def test_a_summary_has_everything_but_the_body(self) -> None:
        job = a_full_job().evolve(prompt="x" * 1000)
        row = Summary.of(job)
        assert row.head == "x" * 200
        assert row.parents == " ".join(job.after)
        assert row.not_before == moment_of(job.not_before)
        for name in set(Summary._fields) - {"head", "parents", "not_before"}:
            assert getattr(row, name) == getattr(job, name)
