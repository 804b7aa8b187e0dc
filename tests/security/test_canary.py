"""Promise 9, fault 62: secrets that sing, and a search for their song everywhere.

The password of a job's broker, its token, the logins of our own broker, the password of a
database: while a worker, an agent, a watcher and a console are at it, every argument and every
environment of theirs is read; afterwards every file, every screen and all that was printed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from mam_core.cli.main import main
from mam_core.events.embedded import Role, credentials
from mam_core.operations.preferences import Preferences
from mam_core.records import Status
from tests.security.deeds import everything_in
from tests.support.brokers import processes_in
from tests.support.sessions import SessionShop
from tests.support.terminal import Terminal, terminal

PASSWORD = "canary-broker-password-51c0"
DSN_PASSWORD = "canary-dsn-password-90aa"

#: Where a secret may be besides its record: with an event that waits for the broker whose password
#: it is, and in our broker's own files.
_HOMES = (
    *(".outbox/", ".broker/credentials.json", ".broker/nats.conf", ".broker/nats/"),
    ".broker/mosquitto",
)


@pytest.fixture
def window(shop: SessionShop) -> Iterator[Terminal]:
    Preferences(hint_seen=True).save()
    with terminal(shop.folder, (150, 40)) as made:
        yield made


def _songs(shop: SessionShop, *jobs: str) -> dict[str, str]:
    found = {"the broker's password": PASSWORD}
    for job_id in jobs:
        found[f"the token of {job_id}"] = shop.job(job_id).auth_token or "?"
    for role in Role:
        found[f"the login of the {role}"] = credentials(str(shop.path), role).password
    assert all(len(secret) > 10 for secret in found.values())
    return found


def _heard_in(text: str | bytes, songs: dict[str, str]) -> list[str]:
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return [name for name, secret in songs.items() if secret.encode() in data]


def _in_processes(shop: SessionShop, songs: dict[str, str]) -> list[str]:
    """Whoever is at work here or below: `ps` and /proc show these to others."""
    found = []
    for process in processes_in(shop.folder):
        with suppress(psutil.Error):
            for one in (process, *process.children(recursive=True)):
                seen = "\0".join(one.cmdline())
                found += [
                    f"{name}: an argument of {seen!r:.100}" for name in _heard_in(seen, songs)
                ]
                around = "\0".join(one.environ().values())
                found += [f"{name}: around {seen!r:.100}" for name in _heard_in(around, songs)]
    return found


def test_no_secret_is_heard_outside_of_its_home(
    shop: SessionShop, window: Terminal, home: Path
) -> None:
    broker = {"host": "127.0.0.1", "port": 1, "username": "u", "password": PASSWORD}
    slow = shop.agent("slow", "hangs")
    teller = shop.agent("teller", "tells_surroundings")
    shop.settle()
    runs = shop.add(slow, "stay", auth_token=True, broker=broker)
    told = shop.add(teller, "tell", auth_token=True, broker=broker, agent_session="tmux:t")
    songs = _songs(shop, runs, told)
    heard: list[str] = []
    with shop.mam_work() as worker, shop.mam("watch", runs, "--json") as watcher:
        shop.until_status(runs, Status.RUNNING)
        shop.until_said(runs, "stand-in")
        window.run("mam")
        window.until("mam board", runs)
        for key in ("]", "]", "]", "Enter", "Escape", "4", "5", "7", "1"):
            window.press(key)
            heard += [f"{name} on the screen" for name in _heard_in(window.screen(), songs)]
        shop.ok("publish", "--job", runs, "--event", "progress", "--detail", "on")
        heard += _in_processes(shop, songs)
        window.press("C-q")
        window.until_prompt()
        shop.ok("cancel", runs)
        shop.until_status(runs, Status.CANCELLED)
        watcher.code()
    with shop.mam("work", "--label", "tmux:t", "--drain") as worker_two:
        worker_two.code()
    said = [*worker.out, *worker.err, *watcher.out, *watcher.err, *worker_two.err]
    heard += [f"{name}: said by a process" for name in _heard_in("\n".join(said), songs)]
    heard += [f"{name}: on the terminal" for name in _heard_in(window.written(), songs)]
    for words in (
        *(("list",), ("list", "--json"), ("get", told), ("logs", told), ("logs", told, "--json")),
        *(("why", told), ("replay", "--at", "-1s"), ("attention",), ("config",), ("nodes",)),
        *(("export", "-o", "a.csv"), ("export", "-o", "a.json"), ("export", "-o", "a.md")),
        *(("doctor",), ("broker", "--status"), ("output", told), ("sessions", "--json")),
    ):
        answer = shop.say(*words)
        allowed = words[0] == "get" or words == ("list", "--json")  # the record itself
        if not allowed:
            heard += [f"{one}: mam {words[0]}" for one in _heard_in(answer.out + answer.err, songs)]
    heard += list(_in_files(shop, home, songs))
    assert not heard
    assert _heard_in((shop.path / f"{told}.json").read_bytes(), songs)  # the search finds it there


def _in_files(shop: SessionShop, home: Path, songs: dict[str, str]) -> Iterator[str]:
    records = {f"{path.stem}.json" for path in shop.path.glob("*.json")}
    for path in everything_in(shop.folder, home):
        inside = os.fspath(path.relative_to(shop.folder.parent))
        if not path.is_file() or (path.parent == shop.path and path.name in records):
            continue
        if any(place in inside for place in _HOMES):
            continue
        for name in _heard_in(path.read_bytes(), songs):
            yield f"{name}: in {inside}"


def test_the_password_of_a_database_is_in_no_argument_and_no_answer(
    shop: SessionShop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be in a file of 0600 or in PGPASSWORD; in an address that is typed it may not."""
    url = f"postgresql://ann:{DSN_PASSWORD}@127.0.0.1:1/jobs"
    refused = shop.say("list", "--store", url)
    assert refused.code == 2 or refused.code == 1
    assert DSN_PASSWORD not in refused.err
    secret = tmp_path / "secret"
    secret.write_text(DSN_PASSWORD)
    secret.chmod(0o600)
    settings = shop.folder / "mam.toml"
    lines = '[store]\nurl = "postgresql://ann@127.0.0.1:1/jobs"\n'
    settings.write_text(f'{lines}password_file = "{secret}"\n')
    for words in (("config",), ("list",), ("why", "x"), ("doctor",), ("export", "-o", "x.csv")):
        code = main(list(words))
        said = "".join(capsys.readouterr())
        assert DSN_PASSWORD not in said, words
        assert code == 0 or "password" in said or "127.0.0.1" in said, (words, said)
    for path in everything_in(shop.folder):
        assert not path.is_file() or DSN_PASSWORD not in path.read_text(errors="replace"), path
