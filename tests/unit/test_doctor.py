"""What the doctor says of a machine, and how a check becomes an answer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mam_core.config import load
from mam_core.doctor import agents, broker, machine, place
from mam_core.doctor.findings import Area, Check, Finding, Severity, ok, problem
from mam_core.doctor.ground import Ground, Look
from mam_core.errors import StoreError
from mam_core.events.servers import NoBroker
from mam_core.operations.doctor import examine
from mam_core.wiring import open_registry
from mam_core.work.workers_here import options_of_worker, registry_of_worker
from tests.support.rows import each_row


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    config = load()
    path = str(tmp_path / "jobs")
    with open_registry(path, config=config) as registry:
        yield Ground(registry, path, config)


def worst(findings: Iterator[Finding]) -> list[Finding]:
    return [one for one in findings if one.severity is not Severity.OK]


class TestMachine:
    def test_macos_is_told_what_it_lacks(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Decision 30"""
        monkeypatch.setattr(machine, "look_around", lambda: ())
        assert worst(machine.kernel(Look(ground))) == [] or sys.platform != "linux"
        monkeypatch.setattr(machine, "sys", SimpleNamespace(platform="darwin"))
        (said,) = worst(machine.kernel(Look(ground)))
        assert said.severity is Severity.NOTE
        assert "no pidfd, no subreaper and no namespaces" in said.words

    def test_programs_that_are_missing(
        self, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(broker, "choose", _no_program)
        for check in (machine.git, machine.tmux, broker.program):
            (said,) = worst(check(Look(ground)))
            assert said.severity is Severity.WARNING
        (others,) = worst(agents.found(Look(ground)))
        assert "claude-code" in others.words

    @pytest.mark.parametrize(
        ("free", "severity"),
        [(2**40, Severity.OK), (2**29, Severity.WARNING), (2**20, Severity.PROBLEM)],
    )
    def test_room_on_the_disk(
        self, ground: Ground, monkeypatch: pytest.MonkeyPatch, free: int, severity: Severity
    ) -> None:
        state = SimpleNamespace(f_bavail=free, f_frsize=1, f_files=10**6, f_favail=10**6)
        monkeypatch.setattr(os, "statvfs", lambda _: state)
        assert [one.severity for one in place.disk(Look(ground))] == [severity]


class TestExamining:
    def test_what_cannot_be_looked_at_is_no_verdict(self, ground: Ground) -> None:
        def broken(look: Look) -> Iterator[Finding]:
            raise StoreError("the disk is on fire")

        check = Check(Area.MACHINE, "fire", broken, is_about_registry=False)
        (answer,) = examine(ground, checks=[check], pause=lambda _: None)
        (finding,) = answer.findings
        assert finding.severity is Severity.WARNING
        assert finding.words == "this could not be looked at: the disk is on fire"

    def test_only_what_was_seen_twice_is_told(self, ground: Ground) -> None:
        looks = iter([["a", "b"], ["b", "c"]])

        def flickers(look: Look) -> Iterator[Finding]:
            for what in next(looks):
                yield problem(Area.JOBS, what, "is odd")

        check = Check(Area.JOBS, "odd jobs", flickers, is_about_registry=False)
        pauses: list[float] = []
        (answer,) = examine(ground, checks=[check], pause=pauses.append)
        assert [one.what for one in answer.findings] == ["b"]
        assert len(pauses) == 1

    def test_where_all_is_well_nobody_waits(self, ground: Ground) -> None:
        check = Check(
            Area.JOBS, "jobs", lambda _: [ok(Area.JOBS, "a", "is well")], is_about_registry=False
        )
        pauses: list[float] = []
        examine(ground, checks=[check], pause=pauses.append)
        assert pauses == []

    def test_without_a_registry_it_is_not_asked_for(self, ground: Ground) -> None:
        check = Check(Area.JOBS, "jobs", lambda _: [problem(Area.JOBS, "a", "is odd")])
        assert examine(ground, checks=[check]) == []


@each_row(
    ("line", "label"),
    [
        ("python -P -m mam_core work --agent-session tmux:a --agents x", "tmux:a"),
        ("/usr/bin/python3 /venv/bin/mam work --agent-session=tmux:a", "tmux:a"),
        ("python -m mam_core.cli.main --config f work --agent-session tmux:a", "tmux:a"),
        ("vim work --agent-session tmux:a", None),
        ("mam list", None),
    ],
)
def test_a_worker_is_known_by_its_command_line(line: str, label: str | None) -> None:
    options = options_of_worker(line.split())
    assert (options or {}).get("--agent-session") == label


def test_the_registry_that_a_worker_names_before_its_verb_is_known() -> None:
    options = options_of_worker(
        ["mam", "--registry-dir", "there", "--config=f", "work", "--label", "a"]
    )
    assert options is not None
    assert (options["--registry-dir"], options["--config"]) == ("there", "f")


@pytest.mark.parametrize("settings", ['registry_dir = "state/jobs"', 'registry_dir = "state', ""])
def test_the_registry_of_a_worker_is_the_one_of_its_settings(tmp_path: Path, settings: str) -> None:
    """If somebody has spoilt those since then, it is the usual one."""
    place = tmp_path / ("state/jobs" if settings.endswith('jobs"') else ".mam/jobs")
    place.mkdir(parents=True)
    (tmp_path / "mam.toml").write_text(f"[store]\n{settings}\n")
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path) as worker:
        assert registry_of_worker(worker.pid, {}) == str(place)
        worker.kill()


def test_a_worker_whose_folder_was_removed_serves_no_registry_that_can_be_named(
    tmp_path: Path,
) -> None:
    """Also one in a container, whose folders are not those of this host."""
    folder = tmp_path / "gone"
    folder.mkdir()
    with subprocess.Popen(["sleep", "60"], cwd=folder) as worker:
        folder.rmdir()
        assert registry_of_worker(worker.pid, {}) is None
        worker.kill()


def _no_program() -> None:
    raise NoBroker
