"""What workers say of their hosts, and what is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core.machine import Machine, look
from mam_core.nodes.hearing import Heard
from mam_core.nodes.overview import NodeState, nodes_of
from mam_core.nodes.status import (
    MAX_BYTES,
    BadStatusWord,
    Topics,
    WorkerStatus,
    every_worker,
    home_and_kind,
    topics_in,
)
from tests.support.clock import NOON
from tests.support.rows import each_row


def a_status(**changed: Any) -> WorkerStatus:
    made = WorkerStatus(
        node="oak",
        worker="41:900",
        at=NOON,
        started_at=NOON - 60,
        version="0.1.0",
        boot="boot-one",
        namespace=7,
        agent_session="tmux:claude",
        agents=("claude-code",),
        slots=2,
        running=("job1",),
        machine=Machine(8, 1.5, 16 << 30, 4 << 30),
    )
    return made._replace(**changed)


class TestAWord:
    @pytest.mark.parametrize(
        "status",
        [
            a_status(),
            a_status(clock_offset=-300.25, running=(), agent_session='별 "x"\x1b[2J'),
            a_status(machine=Machine(1, 0.0, None, None)),
        ],
    )
    def test_arrives_as_it_was_said(self, status: WorkerStatus) -> None:
        assert WorkerStatus.parse(status.encode()) == status

    @each_row(
        "payload",
        [
            b"",
            b"gone",
            b"[]",
            b"{}",
            b"\xff",
            b"[" * 100_000,
            b" " * (MAX_BYTES + 1),
            a_status().encode().replace(b'"schema_version":1', b'"schema_version":2'),
            a_status().encode().replace(b'"slots":2', b'"slots":-2'),
            a_status().encode().replace(b'"slots":2', b'"slots":true'),
            a_status().encode().replace(b'"load":1.5', b'"load":NaN'),
            a_status().encode().replace(b'["job1"]', b'[["job1"]]'),
            a_status().encode().replace(b'"oak"', b"null"),
            a_status().encode().replace(b'"load":1.5', b'"load":1e300'),
            a_status().encode().replace(b'"slots":2', b'"slots":' + b"9" * 4000),
        ],
    )
    def test_that_makes_no_sense_is_refused(self, payload: bytes) -> None:
        with pytest.raises(BadStatusWord):
            WorkerStatus.parse(payload)

    @given(st.binary(max_size=300))
    def test_of_anything_else_is_refused_too(self, payload: bytes) -> None:
        with pytest.raises(BadStatusWord):
            WorkerStatus.parse(payload)


class TestTopics:
    @given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
    def test_whatever_a_host_is_called_no_level_is_added(self, node: str, worker: str) -> None:
        topics = Topics.of("realm", node, worker)
        for topic in topics:
            assert topic.count("/") == every_worker("realm").count("/")
            assert not set(topic) & set("+#. \0")

    def test_a_word_finds_its_worker(self) -> None:
        topics = Topics.of("realm", "oak", "41:900")
        assert home_and_kind(topics.status)[0] == home_and_kind(topics.will)[0]
        assert [home_and_kind(topic)[1] for topic in topics] == [False, True]
        assert topics_in(home_and_kind(topics.will)[0]) == topics
        assert topics.status.startswith(every_worker("realm", "oak").partition("+")[0])


class TestHosts:
    def one(self, *heard: Heard, **running: list[str]) -> Any:
        (node,) = nodes_of(heard, running, {}, NOON)
        return node

    def test_workers_of_one_host_are_added_up(self) -> None:
        other = a_status(worker="42:901", agent_session="tmux:codex", slots=3, running=("job2",))
        node = self.one(Heard(a_status(), False, 0.0), Heard(other, False, 0.0))
        assert (node.state, node.workers, node.slots) == (NodeState.UP, 2, 5)
        assert node.running == ("job1", "job2")
        assert node.sessions == ("tmux:claude", "tmux:codex")

    def test_one_that_lives_speaks_for_a_host(self) -> None:
        """What a killed worker said last is not added to it."""
        dead = a_status(worker="42:901", slots=3, running=("job2",))
        node = self.one(Heard(a_status(), False, 0.0), Heard(dead, True, 0.0))
        assert (node.state, node.workers, node.slots) == (NodeState.UP, 1, 2)

    def test_a_host_that_was_cut_off_is_stale_and_never_idle(self) -> None:
        node = self.one(Heard(a_status(at=NOON - 90), True, 0.0))
        assert (node.state, node.since) == (NodeState.STALE, NOON - 90)
        assert node.running == ("job1",)

    def test_a_word_of_long_ago_is_not_believed_even_without_a_will(self) -> None:
        assert self.one(Heard(a_status(at=NOON - 3600), False, 0.0)).state is NodeState.STALE

    def test_a_clock_that_is_wrong_makes_no_host_stale(self) -> None:
        late = a_status(at=NOON - 3600, clock_offset=-3600.0)
        assert self.one(Heard(late, False, 0.0)).state is NodeState.UP

    def test_a_host_that_only_the_records_know_is_silent(self) -> None:
        node = self.one(oak=["job2", "job1"])
        assert (node.state, node.running, node.machine) == (
            NodeState.SILENT,
            ("job1", "job2"),
            None,
        )

    def test_one_that_is_to_claim_no_more_says_so(self) -> None:
        (node,) = nodes_of([Heard(a_status(), False, 0.0)], {}, {"oak": "new disk"}, NOON)
        assert node.state is NodeState.DRAINING

        assert (node.is_drained, node.is_drained_unheard, node.free) == (True, False, 0)
        assert node.why == "new disk"

    def test_one_that_was_drained_is_named_though_nobody_hears_it(self) -> None:
        """Or nobody could find out why it does nothing, and take that back."""
        (silent,) = nodes_of([], {}, {"oak": "new disk"}, NOON)
        (stale,) = nodes_of([Heard(a_status(), True, 0.0)], {}, {"oak": "new disk"}, NOON)
        assert (silent.state, silent.is_drained_unheard) == (NodeState.SILENT, True)
        assert (stale.state, stale.is_drained_unheard) == (NodeState.STALE, True)
        assert silent.free is stale.free is None

    def test_free_slots_are_those_that_would_take_a_job(self) -> None:
        assert self.one(Heard(a_status(), False, 0.0)).free == 1
        full = a_status(running=("a", "b", "c"))
        assert self.one(Heard(full, False, 0.0)).free == 0
        assert self.one(Heard(a_status(), True, 0.0)).free is None

    def test_its_last_word_is_dated_by_our_own_clock(self) -> None:
        late = a_status(at=NOON - 310, clock_offset=-300.0)
        assert self.one(Heard(late, True, 0.0)).since == NOON - 10
        assert self.one(Heard(late, False, 0.0)).heard_at == NOON - 10
        assert self.one(Heard(a_status(at=NOON + 99), False, 0.0)).heard_at == NOON
        assert self.one(oak=["job1"]).heard_at is None
        (node,) = nodes_of([Heard(late, False, 0.0)], {}, {}, NOON + 60, ahead=60.0)
        assert node.heard_at == NOON + 50

    def test_is_told_as_json(self) -> None:
        said = self.one(Heard(a_status(at=NOON), True, 0.0)).to_dict()
        assert said["since"] == "2026-06-19T09:30:00Z"
        assert said["heard_at"] == said["since"]
        assert (said["drained"], said["free"], said["clock_offset"]) == (False, None, None)
        assert (said["cores"], said["load"], said["memory_free"]) == (8, 1.5, 4 << 30)
        assert self.one(oak=[]).to_dict()["cores"] is None


class TestThisMachine:
    def test_is_looked_at(self, tmp_path: Path) -> None:
        (tmp_path / "loadavg").write_text("1.25 0.9 0.8 2/345 678\n")
        (tmp_path / "meminfo").write_text(
            "MemTotal: 2048 kB\nMemFree: 1 kB\nMemAvailable: 512 kB\n"
        )
        seen = look(str(tmp_path))
        assert seen.cores >= 1
        assert seen[1:] == (1.25, 2048 * 1024, 512 * 1024)

    def test_without_proc_there_is_no_word_about_memory(self, tmp_path: Path) -> None:
        seen = look(str(tmp_path / "none"))
        assert seen.memory_total is seen.memory_free is None
        assert seen.load >= 0
