"""The parts of a demonstration: its script, its simulated agent, its folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from mam_core import fields
from mam_core.agents.dialogue import dialogue_for
from mam_core.agents.profiles import profile_of
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.config import load
from mam_core.demo import clearing, place, settings, simulated, upkeep
from mam_core.demo.script import MOST_JOBS, cues
from mam_core.demo.upkeep import Upkeep
from mam_core.leases import LeaseTerms
from mam_core.messages import MessageKind
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from tests.support.jobs import request


class TestTheScript:
    def test_is_the_same_every_time_and_of_any_length(self) -> None:
        for jobs in (1, 5, 60, MOST_JOBS):
            played = list(cues(jobs))
            assert played == list(cues(jobs))
            assert len(played) == jobs
            assert [cue.at for cue in played] == sorted(cue.at for cue in played)

    def test_goes_on_for_ever_and_writes_the_same_files_again(self) -> None:
        played = list(islice(cues(None), 3000))
        assert played[:60] == list(cues(60))
        files = {step for cue in played for step in cue.steps if step.startswith("write ")}
        assert len(files) < 500
        assert {"ask", "fail", "fail-first", "limit-first", "work"} <= {
            step.split()[0] for cue in played[-100:] for step in cue.steps
        }

    def test_holds_jobs_that_can_be_registered(self, tmp_path: Path) -> None:
        for cue in cues(200):
            request = cue.request(str(tmp_path), {"notes": "abcd1234"})
            fields.checked(request, now=time.time())
            assert len(simulated.steps_of(request["prompt"])) == len(cue.steps)
            assert "simulated" in request["prompt"]

    def test_has_agents_that_mam_can_run(self, tmp_path: Path) -> None:
        path = tmp_path / "mam.toml"
        path.write_text(settings.text('/tmp/odd "name" \\ here'))
        config = load(str(path))
        assert {player.agent for player in settings.PLAYERS} == set(config.agents)
        for player in settings.PLAYERS:
            profile = profile_of(config, player.agent)
            assert profile.command[-1] == '/tmp/odd "name" \\ here'
            assert (dialogue_for(profile) is not None) == (player.agent == settings.REVIEWER)


class TestTheUpkeep:
    @pytest.fixture
    def staged(self, tmp_path: Path) -> Iterator[tuple[Registry, Upkeep]]:
        here = place.Place(str(tmp_path))
        with open_registry(here.registry_path) as registry:
            yield registry, Upkeep(registry, here)

    def test_the_oldest_jobs_go_with_all_their_files(
        self, staged: tuple[Registry, Upkeep], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(upkeep, "MOST_ENDED", 25)
        registry, made = staged
        ids = [job.job_id for job in registry.register([request() for _ in range(26)])]
        refs = tmp_path / "project" / ".git" / "refs" / "mam"
        for job_id in ids:
            (refs / job_id / "1").mkdir(parents=True)
        for job_id in ids:
            registry.request_cancel(job_id)
        running = registry.register([request()])[0].job_id
        assert made.look()
        left = {path.stem for path in (tmp_path / "jobs").glob("*.json")}
        assert left == {*ids[20:], running}
        assert {path.name for path in (tmp_path / "delegate_job_logs").iterdir()} == left
        assert not list((tmp_path / "jobs" / ".archive").iterdir())
        assert {path.name for path in refs.iterdir()} == set(ids[20:])

    def test_no_job_is_added_while_many_wait(
        self, staged: tuple[Registry, Upkeep], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(upkeep, "MOST_PENDING", 3)
        registry, made = staged
        registry.register([request() for _ in range(2)])
        assert made.look()
        registry.register([request()])
        assert not made.look()

    def test_a_question_is_left_to_a_person_and_then_answered(
        self, staged: tuple[Registry, Upkeep], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        registry, made = staged
        job_id = registry.register([request()])[0].job_id
        lease = LeaseTerms("worker-1", 600.0)
        assert registry.claim(registry.get(job_id).agent_session, lease=lease) is not None
        waits = Sign(AgentState.WAITING, Channel.HOOK, "PermissionRequest", 0.0, "rm -rf build")
        registry.publish(job_id, "state", detail="rm -rf build", data=waits.to_dict())
        made.look()
        assert not registry.get(job_id).messages
        monkeypatch.setattr(upkeep, "PATIENCE_SEC", 0.0)
        made.look()
        (message,) = registry.get(job_id).messages
        assert message.kind is MessageKind.ANSWER


class TestTheSimulatedAgent:
    def run(self, folder: Path, prompt: str, *words: str, attempt: str = "1") -> tuple[int, str]:
        program = [sys.executable, "-I", "-S", simulated.__file__, *words]
        done = subprocess.run(
            program,
            input=prompt,
            cwd=folder,
            env={**os.environ, "MAM_ATTEMPT": attempt},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout

    def test_says_in_every_line_what_it_is(self, tmp_path: Path) -> None:
        code, out = self.run(tmp_path, "Do it\n  work 0.5\n  write a/b.md\n  ask rm x\n")
        assert code == 0
        assert all(line.startswith("[simulated] ") for line in out.splitlines())
        assert (tmp_path / "a" / "b.md").read_text().startswith("Simulated")

    def test_fails_and_meets_limits_at_its_first_attempt_only(self, tmp_path: Path) -> None:
        for step in ("fail-first no luck", "limit-first 5"):
            assert self.run(tmp_path, f"x\n  {step}\n")[0] == 1
            assert self.run(tmp_path, f"x\n  {step}\n", attempt="2")[0] == 0

    def test_speaks_json_both_ways(self, tmp_path: Path) -> None:
        content = [{"type": "text", "text": "x\n  write c.md\n  fail that was all\n"}]
        said = json.dumps({"type": "user", "message": {"role": "user", "content": content}})
        code, out = self.run(tmp_path, f"{said}\n", "--input-format", "stream-json")
        entries = [json.loads(line) for line in out.splitlines()]
        assert code == 0
        assert [one["type"] for one in entries] == ["system", "assistant", "user", "result"]
        assert all(one["simulated"] for one in entries)
        assert entries[-1]["is_error"]
        assert entries[-1]["result"] == "[simulated] that was all"


class TestTheFolder:
    @pytest.fixture(autouse=True)
    def _temporary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def test_is_private_and_left_alone_while_its_owner_lives(self) -> None:
        made, lock = place.make()
        assert made.is_there
        assert clearing.clear_leftovers() == 0
        os.close(lock)
        assert clearing.clear_leftovers() == 1
        assert not os.path.exists(made.root)

    def test_of_somebody_else_is_not_touched(self, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        (tmp_path / "mam-demo-link").symlink_to(elsewhere)
        (tmp_path / "mam-demo-open").mkdir(mode=0o755)
        (tmp_path / "mam-demo-new").mkdir(mode=0o700)  # just being made
        assert clearing.clear_leftovers() == 0
        assert len(list(tmp_path.iterdir())) == 4

    def test_without_a_lock_is_cleared_when_it_is_old(self, tmp_path: Path) -> None:
        old = tmp_path / "mam-demo-old"
        old.mkdir(mode=0o700)
        os.utime(old, (1, 1))
        assert clearing.clear_leftovers() == 1

    def test_is_where_the_process_stands_meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing that a person has set for his own registry counts here."""
        monkeypatch.setenv("MQTT_BROKER", "example.invalid")
        monkeypatch.setenv("DELEGATE_JOB_LOGS_DIR", "/nowhere")
        before, here = dict(os.environ), os.getcwd()
        made, lock = place.make()
        with place.surroundings(made):
            assert os.getcwd() == made.workdir
            assert not {"MQTT_BROKER", "DELEGATE_JOB_LOGS_DIR"} & set(os.environ)
            assert os.environ["XDG_STATE_HOME"].startswith(made.root)
        assert (dict(os.environ), os.getcwd()) == (before, here)
        os.close(lock)
        clearing.clear(made)
