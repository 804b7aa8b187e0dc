"""``mam watch`` with real brokers: what it prints, when it ends, and how."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mam_core.events.embedded import Role, credentials
from mam_core.events.event import MAX_EVENT_BYTES
from mam_core.events.feed import Feed
from mam_core.leases import LeaseTerms
from mam_core.records import Status
from mam_core.wiring import embedded_broker, open_feed
from tests.support.brokers import Ear, nothing_left
from tests.support.feeds import Listener
from tests.support.jobs import LABEL
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.relays import none_left_behind, until_published
from tests.support.watching import MAM, Site, running, said

LINE = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) job=(?P<job>\w+) seq=(?P<seq>\d+) "
    r"(?P<event>\S+ *) (?P<detail>.*)"
)
needs_clients = pytest.mark.skipif(
    shutil.which("mosquitto_pub") is None, reason="mosquitto-clients is missing"
)


@pytest.fixture(params=["nats", "mosquitto"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Its broker runs, or is started by the first command."""
    with nothing_left(tmp_path):
        made = Site(tmp_path, request.param)
        made.start_broker()
        with none_left_behind(made.path):
            yield made
        made.close()


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[Site]:
    with nothing_left(tmp_path):
        made = Site(tmp_path, "nats")
        with none_left_behind(made.path):
            yield made
        made.close()


@contextmanager
def relaying(site: Site) -> Iterator[None]:
    """A broker runs, and what is queued is brought there."""
    with site.mam("relay") as relay:
        relay.until(lambda: relay.says("are brought to their brokers"), "it has begun")
        yield


def topic_of(job_id: str) -> str:
    return f"python/mqtt/jobs/{job_id}/events"


class TestTheExitTellsHowItWent:
    """G17, G18, section Q."""

    def test_all_completed_is_0_and_every_event_is_a_line(self, site: Site) -> None:
        job_id = site.register()
        with site.watching(job_id) as watched:
            site.publish(job_id, "started")
            site.publish(job_id, "progress", detail="half\nway \x1b[2J 별")
            site.publish(job_id, "completed", detail="done")
            assert watched.code() == 0
        assert watched.seqs() == [1, 2, 3]
        found = [LINE.fullmatch(line) for line in watched.out]
        assert [one["event"] for one in found if one] == [
            "started".ljust(20),
            "progress".ljust(20),
            "completed".ljust(20),
        ]
        assert found[1] is not None
        assert found[1]["detail"] == "half\\nway \\x1b[2J 별"
        assert found[1]["job"] == job_id
        assert watched.err[0] == f"mam: listening to 127.0.0.1:{site.port}"
        assert watched.filled() or len(watched.err) == 1

    def test_any_error_is_1(self, site: Site) -> None:
        good, bad = site.register(), site.register()
        with site.watching("--job", good, "--job", bad) as watched:
            site.publish(good, "started", "completed")
            site.publish(bad, "started", "error")
            assert watched.code() == 1
        assert len(watched.out) == 4

    def test_timed_out_is_2(self, site: Site) -> None:
        """I3, I4: the flag, else the record."""
        # Not `watching`: on a busy machine the time is over before it listens.
        with site.mam("watch", site.register(), "--timeout", "1") as watched:
            assert watched.code() == 2
        assert watched.says("timed out: it has not ended in 1 s")
        with site.mam("watch", site.register(timeout_sec=1)) as watched:
            assert watched.code() == 2
        job_id = site.register(timeout_sec=1, idle_timeout_sec=1)
        with site.watching(job_id, "--timeout", "600", "--idle-timeout", "500") as watched:
            threading.Event().wait(1.5)
            site.publish(job_id, "completed")
            assert watched.code() == 0

    def test_silence_is_2_and_events_break_it(self, site: Site) -> None:
        """G16: the idle clock runs from the last event that was received."""
        quiet_sec = 4
        job_id = site.register(idle_timeout_sec=quiet_sec)
        with site.watching(job_id) as watched:
            listens_since = time.monotonic()
            told = 0
            # Often: a machine that is busy elsewhere must not make a silence of its own.
            while time.monotonic() < listens_since + quiet_sec + 0.5:
                site.publish(job_id, "progress")
                told += 1
                time.sleep(0.2)
            assert watched.code() == 2
        assert watched.seqs() == list(range(1, told + 1))
        assert watched.says(f"timed out: nothing was heard of it for {quiet_sec} s")

    def test_an_agent_that_waits_for_a_person_is_not_idle(self, nats: Site) -> None:
        """Decision 23: the wall clock goes on."""
        job_id = nats.register()
        with nats.watching(job_id, "--idle-timeout", "4", "--timeout", "9") as watched:
            nats.publish(job_id, "started", "permission_required")
            assert watched.code() == 2
        assert watched.says("it has not ended in 9 s")

    def test_an_error_weighs_more_than_a_timeout(self, nats: Site) -> None:
        bad, slow = nats.register(), nats.register(timeout_sec=2)
        with nats.watching(bad, slow) as watched:
            nats.publish(bad, "error")
            assert watched.code() == 1
        assert watched.says(f"job {slow} timed out")

    def test_three_jobs_in_one_process(self, site: Site) -> None:
        """G19, A16: all that are live when it begins, and no others."""
        over = site.register()
        site.registry.set_status(over, Status.ERROR)
        jobs = [site.register() for _ in range(3)]
        with site.watching("--wait-any") as watched:
            later = site.register()
            for event in ("started", "progress", "completed"):
                for job_id in jobs:
                    site.publish(job_id, event)
            assert watched.code() == 0
        assert len(watched.out) == 9
        for job_id in jobs:
            mine = [line for line in watched.out if f"job={job_id} " in line]
            assert [line.split()[3] for line in mine] == ["started", "progress", "completed"]
        assert site.job(later).status is Status.PENDING

    def test_with_nothing_live_it_ends_at_once(self, nats: Site) -> None:
        with nats.mam("watch", "--wait-any") as watched:
            assert watched.code() == 0
        assert watched.err == ["mam: no job is pending or running"]

    def test_skewed_clocks_change_nothing(self, site: Site) -> None:
        """G16: what an event says about its time is shown and not counted with."""
        job_id = site.register(timeout_sec=600, idle_timeout_sec=500)
        with site.watching(job_id) as watched:
            for at in ("1970-01-01T00:00:00Z", "2999-12-31T23:59:59Z", ""):
                site.say(job_id, "progress", timestamp=at)
            watched.until(lambda: len(watched.out) == 3, "all three")
            site.say(job_id, "completed", timestamp="yesterday at 3")
            assert watched.code() == 0
        stamps = [line.split()[0] for line in watched.out]
        assert stamps[:2] == ["1970-01-01T00:00:00Z", "2999-12-31T23:59:59Z"]
        assert re.fullmatch(r"20\d\d-.*Z", stamps[2])
        assert stamps[3] == "yesterdayTatT3"


class TestTheRegistryIsTheTruth:
    def test_a_job_that_has_ended_is_told_at_once(self, nats: Site) -> None:
        done, failed = nats.register(), nats.register()
        nats.registry.set_status(done, Status.COMPLETED)
        nats.registry.set_status(failed, Status.ERROR)
        for ids, code in (([done], 0), ([done, failed], 1)):
            with nats.mam("watch", *ids) as watched:
                assert watched.code() == code
            assert watched.out == []
            assert watched.says(f"job {done} had ended already: completed")
        assert not embedded_broker(str(nats.path)).status().running  # nothing was started for it

    def test_a_job_that_ends_without_an_event_ends_the_watch(self, site: Site) -> None:
        job_id = site.register()
        with site.watching(job_id) as watched:
            site.registry.request_cancel(job_id, "no need")
            assert watched.code() == 1
        assert watched.out == []
        assert watched.says(f"job {job_id} ended: cancelled (cancelled: no need)")
        job_id = site.register()
        with site.watching(job_id) as watched:
            site.registry.set_status(job_id, Status.COMPLETED)
            assert watched.code() == 0

    def test_completed_is_earned(self, nats: Site, tmp_path: Path) -> None:
        """Decision 7: the agent says completed, its artifact is missing, the job is an error."""
        job_id = nats.register(expected_artifacts=["out.txt"], workdir=str(tmp_path))
        with nats.watching(job_id) as watched:
            nats.publish(job_id, "started", "completed")
            assert watched.code() == 1
        assert [line.split()[3] for line in watched.out] == ["started", "completed"]
        assert watched.says("ended: error (validation")

    def test_on_a_leased_job_an_event_is_a_report(self, nats: Site) -> None:
        """Decision 15: the worker ends it."""
        job_id = nats.register()
        job = nats.registry.claim(LABEL, lease=LeaseTerms("w", 600))
        assert job is not None
        with nats.watching(job_id) as watched:
            nats.publish(job_id, "completed")
            watched.until(lambda: watched.out, "the report")
            threading.Event().wait(1.5)
            assert watched.process.poll() is None
            nats.registry.finish(job_id, Status.ERROR, attempt=job.attempt)
            assert watched.code() == 1

    def test_an_old_attempts_last_word_is_not_the_jobs(self, nats: Site) -> None:
        """N16"""
        job_id = nats.register()
        nats.registry.claim(LABEL)
        nats.registry.set_status(job_id, Status.ERROR)
        nats.registry.retry(job_id)
        nats.registry.claim(LABEL)
        with nats.watching(job_id) as watched:
            nats.say(job_id, "error", attempt=1)
            watched.until(lambda: watched.out, "it is shown")
            threading.Event().wait(1.5)
            assert watched.process.poll() is None
            nats.publish(job_id, "completed")
            assert watched.code() == 0

    def test_a_record_that_vanishes_is_said_and_the_others_are_followed(self, nats: Site) -> None:
        """N21"""
        gone, other = nats.register(), nats.register()
        with nats.watching(gone, other) as watched:
            (nats.path / f"{gone}.json").unlink()
            watched.until(lambda: watched.says(f"the record of job {gone} is gone"), "said")
            nats.publish(other, "started")
            watched.until(lambda: watched.out, "the other")
            assert watched.process.poll() is None
            nats.publish(other, "completed")
            assert watched.code() == 1
        assert watched.says(f"job {gone} is gone")

    def test_a_job_that_is_cleaned_away_ended_as_the_history_says(self, nats: Site) -> None:
        job_id, other = nats.register(), nats.register()
        with nats.watching(job_id, other) as watched:
            nats.publish(job_id, "completed")
            nats.registry.archive([job_id])
            nats.publish(other, "completed")
            assert watched.code() == 0

    def test_an_unknown_id_is_one_sentence(self, nats: Site) -> None:
        with nats.mam("watch", nats.register(), "nobody99") as watched:
            assert watched.code() == 1
        assert watched.out == []
        assert len(watched.err) == 1
        assert "nobody99" in watched.err[0]

    def test_a_changed_prefix_is_obeyed(self, site: Site) -> None:
        """A12"""
        job_id = site.register(topic_prefix="our/own/prefix")
        with site.watching(job_id) as watched:
            site.publish(job_id, "started", "completed")
            assert watched.code() == 0
        assert watched.seqs() == [1, 2]
        assert len(site.audit(job_id, "received")) + watched.filled() == 2


class TestTheAuditLog:
    def test_each_event_from_the_broker_is_written_as_received(self, site: Site) -> None:
        """F8, F9, decision 18: `published` and `received` hold the same payload."""
        job_id = site.register(auth_token="a-token-of-this-job-and-nobody-else")
        with site.watching(job_id) as watched:
            site.publish(job_id, "started", "progress", "completed", detail="별")
            assert watched.code() == 0
        received = site.audit(job_id, "received")
        assert len(received) + watched.filled() == 3
        assert all(line["attempt"] == 1 and line["watcher"] for line in received)
        with relaying(site):
            for line in received:
                until_published(site.registry, job_id, line["seq"])
        published = {line["seq"]: line["payload"] for line in site.audit(job_id, "published")}
        assert [line["payload"] for line in received] == [
            published[line["seq"]] for line in received
        ]

    def test_two_watchers_hear_everything_and_write_their_own_lines(self, site: Site) -> None:
        """G21"""
        job_id = site.register()
        with site.watching(job_id) as one, site.watching(job_id) as two:
            site.publish(job_id, "started", "progress", "completed")
            assert (one.code(), two.code()) == (0, 0)
        assert one.out == two.out
        by_watcher: dict[str, list[int]] = {}
        for line in site.audit(job_id, "received"):
            by_watcher.setdefault(line["watcher"], []).append(line["seq"])
        assert sum(map(len, by_watcher.values())) + one.filled() + two.filled() == 6
        assert all(seqs == sorted(set(seqs)) for seqs in by_watcher.values())

    def test_two_consoles_and_two_watchers_at_once_miss_nothing(self, site: Site) -> None:
        """Issue 4: each has a client of its own, and nobody takes an event from another."""
        job_id = site.register()
        count = 30

        def feed() -> Feed:
            return open_feed(str(site.path), site.config)

        with (
            site.watching(job_id) as one,
            site.watching("--all", "--json") as two,
            feed() as third,
            feed() as fourth,
        ):
            listeners = [Listener(each, site.registry) for each in (third, fourth)]
            for listener in listeners:
                listener.is_up()
            site.publish(job_id, "started", *["progress"] * (count - 2), "completed")
            assert one.code() == 0
            for listener in listeners:
                listener.hears_all(job_id, count)
            two.until(lambda: len(two.items("event")) >= count, "all events")
            heard = [one.seqs(), *(listener.seqs(job_id) for listener in listeners)]
            heard.append([item["event"]["seq"] for item in two.items("event")])
        assert heard == [list(range(1, count + 1))] * 4
        assert site.job(job_id).status is Status.COMPLETED

    def test_one_that_cannot_be_written_stops_nobody(self, nats: Site) -> None:
        """F13, F14"""
        job_id = nats.register()
        logs = nats.folder / ".mam" / "delegate_job_logs"
        with nats.watching(job_id) as watched:
            shutil.rmtree(logs)
            logs.write_text("in the way")
            nats.publish(job_id, "started", "completed")
            assert watched.code() == 0
        assert watched.seqs() == [1, 2]
        assert watched.says("warning: the audit log")

    def test_no_record_is_changed_by_being_watched(self, nats: Site) -> None:
        job_id = nats.register()
        before = (nats.path / f"{job_id}.json").read_bytes()
        with nats.mam("watch", job_id, "--timeout", "1") as watched:
            assert watched.code() == 2
        assert (nats.path / f"{job_id}.json").read_bytes() == before


@needs_clients
class TestStrangers:
    """G15, G27, K3: whatever they send, the watch goes on and nothing is changed."""

    def test_what_is_no_event_of_ours_is_dropped_and_said(self, site: Site) -> None:
        job_id = site.register(auth_token="a-token-of-this-job-and-nobody-else")
        topic = topic_of(job_id)
        with site.watching(job_id) as watched:
            site.send(topic, b"no JSON \x1b[2J")
            site.send(topic, said(job_id, 1, "progress", schema_version=2))
            site.send(topic, said("nobody99", 1, "progress"))
            site.send(topic, said(job_id, 1, "completed"))
            site.send(topic, said(job_id, 1, "completed", sig="0" * 64))
            watched.until(lambda: len(watched.says("dropped")) == 5, "five drops")
            site.publish(job_id, "started", "completed")
            assert watched.code() == 0
        assert watched.seqs() == [1, 2]
        for why in ("not JSON", "other schema", "unknown job", "unsigned", "wrong signature"):
            assert watched.says(f"({why})")
        assert watched.err[-1] == f"mam: job {job_id}: completed; 2 events, 2 dropped"
        assert not (site.path / "nobody99.json").exists()
        assert "\x1b" not in "".join(watched.err)

    def test_a_completed_that_the_registry_never_issued_ends_nothing(self, site: Site) -> None:
        """A job without a token; the number is then given to the real event, which is shown."""
        job_id = site.register()
        with site.watching(job_id) as watched:
            site.say(job_id, "completed", seq=1, detail="forged")
            watched.until(lambda: watched.says("(number not issued)"), "it is said")
            site.publish(job_id, "completed", detail="earned")
            assert watched.code() == 0
        assert [line.split()[2:] for line in watched.out] == [["seq=1", "completed", "earned"]]
        assert watched.says(f"job {job_id}: completed; 1 event, 1 dropped")

    def test_a_thousand_forged_and_repeated_messages_change_nothing(self, nats: Site) -> None:
        """No end, and no line of an event that the registry does not have."""
        job_id = nats.register()
        with nats.watching(job_id) as watched:
            nats.publish(job_id, *["progress"] * 5, detail="mine")
            watched.until(lambda: len(watched.out) == 5, "the real ones")
            true = eventually(
                lambda: len(found := nats.audit(job_id, "published")) == 5 and found, "all sent"
            )
            with Ear(nats.port, credentials(str(nats.path), Role.AGENT)) as ear:
                for number in range(1_000):
                    seq = number % 10 + 1  # the first five are issued
                    event = ("completed", "error", "cancelled", "state")[number % 4]
                    payload = said(job_id, seq, event, detail="forged", attempt=number % 3)
                    if number % 7 == 0:
                        payload = json.dumps(true[number % 5]["payload"]).encode()
                    ear.client.publish(topic_of(job_id), payload, qos=1)
                ear.publish(topic_of(job_id), "the last of them")
            watched.until(lambda: watched.says("(not JSON)"), "all of them were read")
            nats.publish(job_id, "progress", "completed", detail="mine")
            assert watched.code() == 0
        assert watched.seqs() == [1, 2, 3, 4, 5, 6, 7]
        assert all(line.endswith(" mine") for line in watched.out)
        assert watched.says("differs from the registry")
        assert len(watched.err) < 40

    def test_an_oversized_message_is_dropped(self, site: Site) -> None:
        job_id = site.register()
        with site.watching(job_id) as watched:
            site.say(job_id, "log", seq=1, detail="x" * MAX_EVENT_BYTES)
            site.publish(job_id, "completed")
            assert watched.code() == 0
        assert watched.seqs() == [1]

    def test_a_recorded_message_is_not_heard_again(self, site: Site) -> None:
        """K3, G20: a repeat is noticed, said and not printed."""
        job_id = site.register(auth_token="a-token-of-this-job-and-nobody-else")
        with site.watching(job_id) as watched:
            site.publish(job_id, "started")
            watched.until(lambda: watched.out, "the first")
            published = eventually(lambda: site.audit(job_id, "published"), "it is written down")
            payload = json.dumps(published[0]["payload"]).encode()
            site.send(topic_of(job_id), payload)
            watched.until(lambda: watched.says("(repeated)"), "the repeat")
            site.publish(job_id, "completed")
            assert watched.code() == 0
        assert watched.seqs() == [1, 2]
        assert watched.says(f"job {job_id}: completed; 2 events, 1 repeated")

    def test_gaps_and_disorder_are_noticed(self, site: Site) -> None:
        """G20: 1, 3, 2, 3"""
        job_id = site.register()
        with site.watching(job_id) as watched:
            site.say(job_id, "progress")
            site.registry.next_seq(job_id)
            site.say(job_id, "progress")
            watched.until(lambda: watched.says("did not come"), "the gap")
            site.say(job_id, "progress", seq=2)
            site.say(job_id, "progress", seq=3)
            watched.until(lambda: watched.says("(repeated)"), "the repeat")
            site.say(job_id, "completed")
            assert watched.code() == 0
        assert watched.seqs() == [1, 3, 2, 4]
        assert watched.says("did not come")
        assert watched.says("event 2 of job")

    def test_the_word_of_a_foreign_tool_is_enough_where_it_keeps_the_job(self, site: Site) -> None:
        """As with the original, whose subscriber knew nothing but events."""
        job_id = site.register()
        site.registry.claim(LABEL)
        with site.watching(job_id) as watched:
            site.say(job_id, "started")
            site.say(job_id, "error", detail="it broke")
            assert watched.code() == 1
        assert watched.says("by its event; its record still says running")
        assert site.job(job_id).status is Status.RUNNING

    def test_mosquitto_sub_reads_what_the_audit_log_says(self, site: Site) -> None:
        """F8, G1, G12: QoS 1, not retained, the exact payload."""
        job_id = site.register()
        with site.watching(job_id) as watched:
            where = [*site.foreign(Role.OPERATOR), "-i", "ear", "-c", "-t", topic_of(job_id)]
            subprocess.run(["mosquitto_sub", *where, "-E"], check=True, timeout=PATIENCE_SEC)
            site.publish(job_id, "started", "completed", detail="별")
            assert watched.code() == 0
            # The embedded broker ended with the watch, which need not wait for its relay.
            with relaying(site):
                heard = subprocess.run(
                    ["mosquitto_sub", *where, "-C", "2", "-F", "%q %r %p"],
                    check=True,
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE_SEC,
                ).stdout.splitlines()
                # A relay tells history after the broker has passed the event on.
                until_published(site.registry, job_id, 2)
        published = site.audit(job_id, "published")
        assert [line[:4] for line in heard] == ["1 0 ", "1 0 "]
        assert [json.loads(line[4:]) for line in heard] == [line["payload"] for line in published]


class TestAsAProcess:
    def test_it_needs_no_environment(self, site: Site) -> None:
        """A15"""
        job_id = site.register()
        with site.watching(job_id, environ={}) as watched:
            site.publish(job_id, "started", "completed")
            assert watched.code() == 0
        assert watched.seqs() == [1, 2]

    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 0)]
    )
    def test_all_runs_until_it_is_interrupted(
        self, nats: Site, number: signal.Signals, code: int
    ) -> None:
        with nats.watching("--all") as watched:
            job_id = nats.register()
            nats.publish(job_id, "started", "completed")
            watched.until(lambda: len(watched.out) == 2, "a job that is new")
            watched.send(number)
            assert watched.code() == code

    def test_all_where_there_is_no_registry_says_where_it_looks(self, tmp_path: Path) -> None:
        """Whoever is in the wrong folder would wait for ever."""
        command = [*MAM, "watch", "--all", "--timeout", "0.1"]
        with nothing_left(tmp_path), running(command, tmp_path) as watched:
            assert watched.code() == 2
        where = tmp_path / ".mam" / "jobs"
        assert watched.err[0] == (
            f"mam: there is no registry at {where} yet: its first job is waited for"
        )

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_an_interrupted_watch_is_no_success(
        self, nats: Site, number: signal.Signals, code: int
    ) -> None:
        with nats.watching(nats.register()) as watched:
            watched.send(number)
            assert watched.code() == code
        assert watched.out == []

    def test_each_line_comes_through_a_pipe_at_once(self, nats: Site) -> None:
        job_id = nats.register()
        command = ["bash", "-c", '"$@" | while read -r line; do echo "got $line"; done', "-"]
        with nats.mam("list"):
            pass
        process = subprocess.Popen(
            [*command, *MAM, "watch", job_id],
            cwd=nats.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert process.stdout is not None
        try:
            assert "listening" in process.stderr.readline()
            nats.publish(job_id, "started")
            assert process.stdout.readline().startswith("got 20")
            nats.publish(job_id, "completed")
            assert process.wait(PATIENCE_SEC) == 0
        finally:
            process.kill()
            process.communicate()

    def test_a_reader_that_goes_away_is_no_error(self, nats: Site) -> None:
        """N26"""
        job_id = nats.register()
        script = '"$@" | head -1; echo "${PIPESTATUS[0]}"'
        process = subprocess.Popen(
            ["bash", "-c", script, "-", *MAM, "watch", job_id],
            cwd=nats.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        try:
            assert "listening" in process.stderr.readline()
            for _ in range(20):
                nats.publish(job_id, "progress")
                threading.Event().wait(0.05)
            nats.publish(job_id, "completed")
            out, err = process.communicate(timeout=PATIENCE_SEC)
        finally:
            process.kill()
            process.communicate()
        assert out.splitlines()[1:] == ["0"]
        assert "Traceback" not in err
        assert "pipe" not in err.lower()


class TestJson:
    def test_all_prints_the_feed(self, site: Site) -> None:
        old = site.register()
        with site.watching("--all", "--json") as watched:
            job_id = site.register(auth_token="a-token-of-this-job-and-nobody-else")
            site.publish(job_id, "started", "completed")
            watched.until(
                lambda: [i for i in watched.items("job") if (i["job"])["status"] == "completed"],
                "the end",
            )
            watched.until(lambda: len(watched.items("event")) == 2, "both events")
            (site.path / f"{old}.json").unlink()
            watched.until(
                lambda: [i for i in watched.items("job") if i["job"] is None], "one is gone"
            )
            watched.send(signal.SIGTERM)
            assert watched.code() == 0
        events = watched.items("event")
        assert [each["event"]["seq"] for each in events] == [1, 2]
        assert [each["event"]["event"] for each in events] == ["started", "completed"]
        assert {each["origin"] for each in events} <= {"broker", "registry"}
        assert all(each["age_sec"] >= 0 and each["missing"] == 0 for each in events)
        assert {each["origin"] for each in watched.items("job")} <= {
            "directory",
            "broker",
            "rescan",
        }
        assert "a-token-of-this-job" not in "".join(watched.out)
        assert watched.err == []

    def test_of_named_jobs_begins_with_their_records(self, nats: Site) -> None:
        job_id, other = nats.register(), nats.register()
        with nats.watching(job_id, "--json") as watched:
            nats.publish(other, "started")
            nats.publish(job_id, "completed")
            assert watched.code() == 0
        items = [json.loads(line) for line in watched.out]
        assert items[0]["kind"] == "job"
        assert items[0]["job"]["status"] == "pending"
        assert {item["job_id"] for item in items} == {job_id, None}
        assert watched.items("job")[-1]["job"]["status"] == "completed"


def test_the_same_from_bash(nats: Site) -> None:
    """The subscriber first, then the agent, as the documents have it."""
    script = f"""
    mam() {{ "{sys.executable}" -m mam_core.cli.main "$@"; }}
    id=$(mam register --prompt p --agent a --agent-session l)
    mam watch --job "$id" --timeout 60 > lines 2> said & watcher=$!
    until grep -q listening said; do sleep 0.05; done
    mam publish --job "$id" --event started
    mam publish --job "$id" --event completed --detail done
    wait "$watcher" && cat lines
    """
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=nats.folder,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[3] for line in done.stdout.splitlines()] == ["started", "completed"]
