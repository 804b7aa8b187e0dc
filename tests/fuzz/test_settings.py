"""Settings, dispatch files and our own small files, as a hand or a crash may have left them."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from mam_core.agents.profiles import profile_of
from mam_core.config import load
from mam_core.errors import MamError
from mam_core.sessions import SessionFolder
from mam_tui import own_settings
from tests.cli.conftest import Mam
from tests.fuzz.conftest import EVERY_COUNT, Door, Tried, bounded
from tests.fuzz.mutants import mutants
from tests.unit.test_sessions import session

SETTINGS = b"""\
[defaults]
timeout_sec = 600
memory_max = "8G"
heartbeat_sec = 0.5
lease_sec = 3
[store]
url = "files"
registry_dir = ".mam/jobs"
[broker]
host = "mq"
port = 1883
tls = false
[tmux]
socket = "mine"
[agents.claude-code]
command = ["claude", "-p"]
prompt = "file"
stream = "stream-json"
env = { A = "1" }
model_flag = "--model"
resume = ["--resume", "{session}"]
needs = ["A_KEY"]
[agents."my own"]
command = ["/bin/true", "{prompt_file}"]
[groups.big]
slots = 2
memory = "4G"
[templates.night]
prompt = \"\"\"tidy
up\"\"\"
not_before = "+8h"
auth_token = true
after = []
[notify]
command = ["notify-send"]
debounce_sec = 3
[console]
theme = "nord"
columns = ["id", "state"]
glyphs = "plain"
mouse = false
[keys]
cancel = "x"
"""

TASKS = {
    "version": 1,
    "updated_at": "2026-06-19T09:00:00+09:00",
    "specs_dir": "specs",
    "tasks": {
        "S01": {"status": "pending"},
        "S02": {"status": "claimed", "node": "mac1", "claimed_at": "2026-06-19T09:00:00+09:00"},
        "S03": {"status": "failed", "error": "exit 1", "completed_at": "2026-06-19T09:00:00+09:00"},
        "S04": {"status": "running", "node": "gcp", "pid": 4711, "attempt": 2},
    },
}


@EVERY_COUNT
def test_of_a_person(mam: Mam, door: Door, tried: Tried, count: int) -> None:
    mam.register()
    place = mam.folder / "mam.toml"
    taken = 0
    for mutant in mutants("settings", [SETTINGS], count):
        place.write_bytes(mutant.data)
        if door(mutant.label, "config").code == 0:
            taken += 1
            with bounded(mutant.label):
                _used(place)
            door(mutant.label, "why", "--job", "nobody")
    assert taken, "some of them are only another wish"
    tried("settings", count)


def _used(place: Path) -> None:
    """All that is made of settings which were taken."""
    try:
        config = load(str(place))
        own_settings.check(config)
        for name in config.agents:
            profile_of(config, name)
        for name in config.templates:
            config.template(name)
        config.job_defaults()
        config.slots()
    except MamError:
        pass


@EVERY_COUNT
def test_tasks_that_nodes_share(
    mam: Mam, door: Door, tried: Tried, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_NAME", "mac1")
    (mam.folder / "specs").mkdir()
    for name in ("S01", "S02", "S03", "S04"):
        (mam.folder / "specs" / f"{name}-x.md").write_text("do it")
    place = mam.folder / "tasks.json"
    corpus = [json.dumps(TASKS).encode(), json.dumps(TASKS, indent=2).encode()]
    chance = random.Random(2)
    for number, mutant in enumerate(mutants("tasks", corpus, count)):
        place.write_bytes(mutant.data)
        looks = (["status"], ["status", "--json"], ["summary"], ["release"])
        acts = (["release", "--yes", "--older-than", "1s"], ["init", "specs"], ["import"])
        for words in (chance.choice(looks), chance.choice(acts)):
            before = place.read_bytes()
            answer = door(mutant.label, "dispatch", *words, "--file", place)
            if "cannot be read" in answer.err:
                assert place.read_bytes() == before, mutant.label
        if number % 50 == 0:
            door(mutant.label, "list")
    tried("dispatch files", count)


@EVERY_COUNT
def test_our_own_small_files(mam: Mam, door: Door, tried: Tried, count: int) -> None:
    """Gates, sessions, marks, status and meta: what is damaged costs a sentence or a row."""
    job_id = mam.register()
    mam.ok("pause", "--group", "night", "--until", "2099-01-01T00:00:00Z")
    mam.ok("pick", "--label", "tmux:a")
    SessionFolder(str(mam.registry)).put(session())
    history = mam.folder / ".mam" / "delegate_job_logs" / job_id
    mark = history / "attempts" / "1" / "process.json"
    mark.parent.mkdir(parents=True, mode=0o700)
    mark.write_text(json.dumps({"pid": 1, "started": 2.0, "boot": "x", "token": "t", "node": "n"}))
    places = [
        mam.registry / ".gates",
        mam.registry / ".sessions" / "claude.json",
        history / "meta.json",
        history / "status.json",
        mark,
        mam.registry / ".lock",
        mam.registry / ".journal",
    ]
    for place in places:
        place.touch(mode=0o600)
    whole = {place: place.read_bytes() for place in places}
    whole[mam.registry / ".lock"] = f"{os.getpid()} 12345 boot".encode()
    looks = (["list"], ["sessions"], ["why", job_id], ["attention"], ["logs", job_id])
    acts = (["pick", "--label", "tmux:b"], ["edit", job_id, "--priority", "1"], ["resume", "--all"])
    chance = random.Random(3)
    for number in range(count):
        place = places[number % len(places)]
        (mutant,) = mutants(f"small-{place.name}-{number}", [whole[place] or b"{}"], 1)
        place.write_bytes(mutant.data)
        for words in (chance.choice(looks), chance.choice(acts)):
            door(mutant.label, *words)
        place.write_bytes(whole[place] if place.name != ".lock" else b"")
    assert mam.record(job_id)["prompt"] == "count the stars"
    tried("small files", count)
