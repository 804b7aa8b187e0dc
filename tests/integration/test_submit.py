"""``mam submit``: one command from the prompt to the audit folder."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mam_core.cli.main import main
from mam_core.events import sequence
from mam_core.events.feed import Feed
from mam_core.events.items import EventHeard, Item, Origin
from mam_core.events.subscription import Subscription
from mam_core.operations import submit as submitting
from mam_core.operations import watch
from mam_core.operations.ending import Ending
from mam_core.operations.submit import plan, submit
from mam_core.records import DEFAULT_IDLE_TIMEOUT_SEC, DEFAULT_TIMEOUT_SEC, Reason, Status
from mam_core.stores.base import Query
from mam_core.summaries import Summary
from mam_core.work.screen import Screen
from tests.support.patience import PATIENCE_SEC
from tests.support.working import LABEL, Workshop

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")

EVENT = re.compile(r"\S+ job=(\w+) seq=(\d+) (\w+) +(.*)")


def jobs(shop: Workshop) -> list[Summary]:
    return shop.registry.store.find(Query())[0]


def events(lines: list[str]) -> list[tuple[int, str]]:
    found = [EVENT.fullmatch(line) for line in lines[:-1]]
    return [(int(one[2]), one[3]) for one in found if one]


class TestRun:
    def test_a_job_is_run_followed_and_checked(self, shop: Workshop) -> None:
        """Section Q: register, listen, run, wait, validate, print the audit folder."""
        shop.agent("good", "behaves", "out.txt")
        words = ["--agent", "good", "--prompt=-count;", "--workdir", str(shop.workdir)]
        words += ["--artifact", "out.txt", "--validate", "test -s out.txt"]
        with shop.mam("submit", *words) as submitted:
            assert submitted.code() == 0
        job = jobs(shop)[0]
        assert job.status is Status.COMPLETED
        told = events(submitted.out)
        assert [seq for seq, _ in told] == list(range(1, job.last_seq + 1))
        assert (told[0][1], told[-1][1]) == ("started", "completed")
        folder = submitted.out[-1].removeprefix("audit: ")
        assert (Path(folder) / "attempts" / "1" / "output.log").is_file()
        assert submitted.says(f"job {job.job_id} is registered")
        assert any("this one behaves" in line for line in submitted.err)

    def test_one_that_fails_exits_1(self, shop: Workshop) -> None:
        shop.agent("boaster", "says_done")
        words = ["--agent", "boaster", "--prompt", "x", "--workdir", str(shop.workdir)]
        with shop.mam("submit", *words, "--artifact", "report.md") as submitted:
            assert submitted.code() == 1
        assert jobs(shop)[0].reason is Reason.VALIDATION
        assert events(submitted.out)[-1][1] == "error"

    def test_one_that_is_late_exits_2(self, shop: Workshop) -> None:
        shop.agent("stuck", "hangs")
        words = ["--agent", "stuck", "--prompt", "x", "--idle-timeout", "1"]
        with shop.mam("submit", *words) as submitted:
            assert submitted.code() == 2
        assert jobs(shop)[0].reason is Reason.IDLE_TIMEOUT

    def test_an_interrupt_cancels_it(self, shop: Workshop) -> None:
        """Nobody else serves its label: left behind, it would wait for ever."""
        shop.agent("hostile", "hostile")
        with shop.mam("submit", "--agent", "hostile", "--prompt", "x") as submitted:
            submitted.until(lambda: len(shop.survivors()) == 5, "the agent runs")
            submitted.send(signal.SIGINT)
            assert submitted.code() == 130
        assert not shop.survivors()
        assert jobs(shop)[0].status is Status.CANCELLED

    def test_each_has_a_label_of_its_own(self, shop: Workshop) -> None:
        """C4: no worker and no other submission takes it."""
        shop.agent("good", "behaves")
        other = shop.add("good", agent_session="submit:")
        for _ in range(2):
            with shop.mam("submit", "--agent", "good", "--prompt", "x") as submitted:
                assert submitted.code() == 0
        labels = [job.agent_session for job in jobs(shop)]
        assert len(set(labels)) == 3
        assert shop.job(other).status is Status.PENDING


class Listening:
    """A teller that keeps what it is told."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def tell(self, items: Sequence[Item]) -> None:
        self.items += items

    def end(self, ending: Ending) -> None:
        pass

    def warn(self, sentence: str) -> None:
        pass

    @property
    def origins(self) -> list[tuple[int, Origin]]:
        heard = [item for item in self.items if isinstance(item, EventHeard)]
        return [(item.event.seq, item.origin) for item in heard]


class TestListeningFirst:
    """G12, H7: whoever submits is told the first event by the broker."""

    def submitted(self, shop: Workshop) -> Listening:
        shop.agent("good", "behaves")
        request = {"agent": "good", "prompt": "x", "workdir": str(shop.workdir)}
        heard = Listening()
        with (shop.folder / "screen").open("w") as shown:
            done = submit(
                shop.registry,
                str(shop.path),
                shop.config,
                plan(shop.config, request, time.time()),
                heard,
                registered=lambda job_id: None,
                is_interrupted=lambda: False,
                screen=Screen(shown),
            )
        assert done.job.status is Status.COMPLETED
        return heard

    def test_also_where_the_way_to_the_broker_takes_its_time(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def slow(subscription: Subscription) -> tuple[str, bool]:
            time.sleep(0.7)
            return quick(subscription)

        # The registry tells what no message has brought in time: here there is time.
        monkeypatch.setattr(sequence, "PATIENCE_SEC", PATIENCE_SEC)
        monkeypatch.setattr(watch, "_ANSWER_SEC", PATIENCE_SEC)
        quick = Subscription._listen
        monkeypatch.setattr(Subscription, "_listen", slow)
        assert self.submitted(shop).origins[0] == (1, Origin.BROKER)

    def test_but_not_where_there_is_no_broker(
        self, shop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody waits for one that is down: the job begins, and the registry tells."""
        monkeypatch.setattr("mam_core.operations.watch._ANSWER_SEC", 3600.0)
        monkeypatch.setenv("MQTT_BROKER", "127.0.0.1")
        monkeypatch.setenv("MQTT_PORT", "1")
        assert self.submitted(shop).origins[0] == (1, Origin.REGISTRY)


class TestSession:
    def test_a_named_session_runs_it_and_we_follow(self, shop: Workshop) -> None:
        """H7: also where a worker of that session is only waiting for it."""
        shop.agent("good", "behaves")
        words = ["--agent", "good", "--prompt", "x", "--agent-session", LABEL]
        with shop.at_work(), shop.mam("submit", *words) as submitted:
            assert submitted.code() == 0
        told = events(submitted.out)
        assert (told[0], told[-1][1]) == ((1, "started"), "completed")
        (job,) = jobs(shop)
        assert job.agent_session == LABEL
        who = f"for whoever serves {LABEL} (if nobody does: mam work --agent-session {LABEL}"
        assert submitted.says(f"job {job.job_id} is registered, {who} --agents good)")

    def test_we_listen_before_its_session_may_have_it(
        self,
        shop: Workshop,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """H7: however slow we are to listen, and however eager the session is."""
        steps: list[str] = []

        def listen(self: Feed) -> Feed:
            time.sleep(0.3)  # a worker looks for jobs every 20 ms
            steps.append(jobs(shop)[0].status)
            feed = real_listen(self)
            steps.append("we listen")
            return feed

        @contextmanager
        def released(*words: Any) -> Iterator[None]:
            steps.append("it is released")
            with real_release(*words):
                yield

        real_listen, real_release = Feed.__enter__, submitting._released
        monkeypatch.setattr(Feed, "__enter__", listen)
        monkeypatch.setattr(submitting, "_released", released)
        monkeypatch.chdir(shop.folder)
        shop.agent("good", "behaves")
        shop.settle()
        words = ["--agent", "good", "--prompt", "x", "--agent-session", LABEL]
        with shop.at_work():
            assert main(["submit", *words]) == 0
        assert steps == ["pending", "we listen", "it is released"]
        assert events(capsys.readouterr().out.splitlines())[0] == (1, "started")


class TestNothingDone:
    def test_a_dry_run_says_what_would_be_run_and_changes_nothing(self, shop: Workshop) -> None:
        """H9."""
        words = ["--agent", "shell", "--prompt", "touch here", "--timeout", "5m"]
        with shop.mam("submit", *words, "--dry-run") as submitted:
            assert submitted.code() == 0
        assert submitted.out[0] == "command: /bin/sh '{prompt_file}'"
        assert "time: 300 s" in submitted.out
        assert not shop.path.parent.exists()

    def test_its_default_timeout_is_the_registry_s(self, shop: Workshop) -> None:
        """H14: one constant, whichever way a job comes in."""
        with shop.mam("submit", "--agent", "shell", "--prompt", "true", "--dry-run") as submitted:
            assert submitted.code() == 0
        assert f"time: {DEFAULT_TIMEOUT_SEC} s" in submitted.out
        assert f"silence: {DEFAULT_IDLE_TIMEOUT_SEC} s" in submitted.out
        assert jobs(shop) == []
        with shop.mam("submit", "--agent", "shell", "--prompt", "true") as submitted:
            assert submitted.code() == 0
        added, bare = jobs(shop)[0].job_id, shop.add("shell")
        for job in (shop.job(added), shop.job(bare)):
            limits = (job.timeout_sec, job.idle_timeout_sec)
            assert limits == (DEFAULT_TIMEOUT_SEC, DEFAULT_IDLE_TIMEOUT_SEC)

    def test_an_agent_that_is_not_here_is_told_with_what_it_would_have_run(
        self, shop: Workshop
    ) -> None:
        """H8."""
        shop.agent("absent", "/no/such/agent", "-p")
        with shop.mam("submit", "--agent", "absent", "--prompt", "x") as submitted:
            assert submitted.code() == 1
        assert submitted.out[0] == "command: /no/such/agent -p"
        assert submitted.says("is not here")
        with shop.mam("submit", "--agent", "absent", "--prompt", "x", "--dry-run") as rehearsed:
            assert rehearsed.code() == 1
        assert (rehearsed.out, rehearsed.err) == (submitted.out, submitted.err)
        assert not shop.path.parent.exists()

    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (["--agent", "nobody", "--prompt", "x"], 1, "there is no agent 'nobody'"),
            (["--agent", "shell"], 2, "missing: --prompt"),
            (["--agent", "shell", "--prompt", "x", "--timeout", "-1"], 2, "--timeout"),
        ],
    )
    def test_a_mistake_is_one_sentence_and_leaves_nothing(
        self, shop: Workshop, words: list[str], code: int, said: str
    ) -> None:
        with shop.mam("submit", *words) as submitted:
            assert submitted.code() == code
        assert len(submitted.err) == 1
        assert submitted.says(said)
        assert not shop.path.parent.exists()
