"""``docs/hosts.md`` is run as it stands: two hosts, a real PostgreSQL, a real Mosquitto, TLS.

A comment before a block says where it belongs; a block without one is not run. Each host sees
its own folder as ``/srv`` and finds the other one by its name. What only a real host has
(``sudo``, ``systemctl``, ``scp`` and the users of Debian's packages) is stood in for.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.brokers import server
from tests.support.hosts import Host, two_hosts
from tests.support.patience import eventually
from tests.support.postgres import ROOT, Server, private_folder, program
from tests.support.watching import running

pytestmark = pytest.mark.timeout(300)

PAGE = ROOT / "docs" / "hosts.md"
_BLOCK = re.compile(r"<!-- (\w+): (.*?) -->\n```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: Into the mount namespace that `ip netns exec` makes, and nowhere else.
_FURNISH = """\
mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/$1" /srv || exit 125
root=$0; shift; export PATH="$root/bin:$PATH" ROOT="$root"; exec "$@" """
_SHIMS = {
    # Before the user's name; of whom it is run is not what this page is about.
    "sudo": 'if [ "$1" = -u ]; then shift 2; fi\nexec "$@"',
    "scp": 'for to; do :; done\nwhile [ $# -gt 1 ]; do cp "$1" "$ROOT/${to%%:*}${to#*:/srv}"; '
    "shift; done",
    "mam": f'exec "{sys.executable}" -m mam_core.cli.main "$@"',
}
#: The users of Debian's packages need not be there.
_USERS = {"-o mosquitto": "-o root", "chown mosquitto": "chown root", "-o postgres": "-o nobody"}


class Block(NamedTuple):
    """One of the page, and what is to be done with it."""

    verb: str
    about: str
    text: str


def blocks() -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


class Furnished(Host):
    """A host with a disk of its own, which knows the other by name."""

    root: Path

    def command(self, *words: str) -> list[str]:
        return super().command("sh", "-c", _FURNISH, str(self.root), self.name, *words)


class Database(Server):
    """With the page's lines, and nobody trusted but on its socket."""

    def __init__(self, root: Path, host: Host, lines: dict[str, str]) -> None:
        super().__init__(root, "fsync=off", host=host)
        self._lines = lines
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        self.has_tls = bool(programs)
        if programs:  # the one that tests bring along is built without TLS
            self._bin = programs[-1].parent

    def _make(self) -> None:
        super()._make()
        conf, rights = self._lines["postgresql.conf"], self._lines["pg_hba.conf"]
        if not self.has_tls:
            conf, rights = "", rights.replace("hostssl", "host")
        with open(self.data / "postgresql.conf", "a", encoding="ascii") as file:
            file.write(conf)
        (self.data / "pg_hba.conf").write_text(f"local all all trust\n{rights}")


class Walk:
    """Down the page, block by block."""

    def __init__(self, root: Path, oak: Furnished, elm: Furnished, up: ExitStack) -> None:
        self._root, self._up = root, up
        self._hosts = {"oak": oak, "elm": elm}
        self._database: Database | None = None
        self._config: dict[str, str] = {}
        self.done: list[str] = []

    def take(self, block: Block) -> None:
        text = block.text
        for debian, ours in {**_USERS, "~/mam": shlex.quote(str(ROOT))}.items():
            text = text.replace(debian, ours)
        if self._database is not None and not self._database.has_tls:
            text = text.replace("sslmode=verify-full", "sslmode=disable")
        getattr(self, f"_{block.verb}")(block.about, text)
        self.done.append(block.verb)

    @property
    def has_tls(self) -> bool:
        assert self._database is not None
        return self._database.has_tls

    def ask(self, host: str, script: str) -> subprocess.CompletedProcess[str]:
        environ = dict(os.environ, PGUSER="postgres")
        if self._database is not None:
            environ["PGHOST"] = str(self._database.root)
        return subprocess.run(
            self._hosts[host].command("sh", "-eu", "-c", script),
            cwd="/",
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def _run(self, host: str, script: str) -> None:
        done = self.ask(host, script)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"

    def _add(self, name: str, text: str) -> None:
        self._config[name] = text

    def _write(self, about: str, text: str) -> None:
        host, path = about.split()
        place = self._root / host / path.removeprefix("/srv/")
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)

    def _service(self, name: str, _text: str) -> None:
        if name == "postgresql":
            root = private_folder()
            self._up.callback(shutil.rmtree, root, ignore_errors=True)
            self._database = Database(root, self._hosts["oak"], self._config)
            self._up.callback(self._database.stop)
            self._database.start()
        else:
            program = server("mosquitto").find()
            assert program is not None
            conf = self._root / "oak" / "mam" / "mosquitto.conf"
            conf.write_text(f"{conf.read_text()}user root\n")
            started = self._broker(program.path, "/srv/mam/mosquitto.conf", b" running")
            self._up.enter_context(started)

    @contextmanager
    def _broker(self, program: str, conf: str, ready: bytes) -> Iterator[None]:
        words = self._hosts["oak"].command(program, "-c", conf)
        place = self._root / f"{Path(conf).stem}.log"
        with open(place, "wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as run:
            try:
                eventually(lambda: ready in place.read_bytes(), f"{conf} serves")
                yield
            finally:
                run.kill()

    def _stays(self, host: str, script: str) -> None:
        words = self._hosts[host].command(
            "sh", "-eu", "-c", script.replace("mam work", "exec mam work")
        )
        self._up.enter_context(running(words, self._root))

    def _nats(self, path: str, script: str) -> None:
        """Valid as it stands; then one of the three, in Mosquitto's place, which has gone."""
        program = server("nats").find()
        assert program is not None
        self._run("oak", script.replace("nats-server", shlex.quote(program.path)))
        place = self._root / "oak" / path.removeprefix("/srv/")
        text = re.sub(r"^cluster \{.*?^\}\n", "", place.read_text(), flags=re.DOTALL | re.MULTILINE)
        for host in self._hosts:
            secret = (self._root / "oak" / "mam" / f"{host}.mq").read_text().strip()
            text = text.replace("$2a$11$…", secret, 1)
        place.write_text(text.replace("oak:8883", "oak:8884"))
        self._up.enter_context(self._broker(program.path, path, b"Server is ready"))


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    server("mosquitto")
    if ROOT.is_relative_to("/srv"):
        pytest.skip("each host of the page has a /srv of its own, which would hide this clone")
    for needed in ("openssl", "mosquitto_pub"):
        if shutil.which(needed) is None:
            pytest.skip(f"the page needs {needed}, which is not installed here")
    with ExitStack() as up:
        hosts = [Furnished(*host) for host in up.enter_context(two_hosts())]
        (tmp_path / "bin").mkdir()
        postgres_programs = {name: f'exec "{program(name)}" "$@"' for name in ("psql", "createdb")}
        for name, text in {**_SHIMS, **postgres_programs}.items():
            (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / "bin" / name).chmod(0o755)
        names = [f"{host.address} {host.name}\n" for host in hosts]
        (tmp_path / "hosts").write_text("127.0.0.1 localhost\n" + "".join(names))
        for host in hosts:
            host.root = tmp_path
            (tmp_path / host.name).mkdir()
        oak, elm = hosts
        yield Walk(tmp_path, oak, elm, up)


def test_the_page_does_what_it_says(walk: Walk) -> None:
    """L, item 6: every command of it, but for the firewall."""
    for block in blocks():
        walk.take(block)
    assert walk.done.count("run") >= 8
    assert {"service", "stays", "nats", "add", "write"} <= set(walk.done)
    eventually(lambda: seen_from_oak(walk).get("elm", {}).get("state") == "up", "elm's word")
    elm = seen_from_oak(walk)["elm"]
    assert abs(elm["clock_offset"]) < 60, "of one clock, which the database goes by, too"
    for port in (8883, 8884):
        nobody_speaks_for_another_host(walk, port)
    a_worker_cannot_change_tables(walk)


def seen_from_oak(walk: Walk) -> dict[str, Any]:
    said = walk.ask("oak", "cd /srv/project; mam nodes --json").stdout
    return {node["name"]: node for node in json.loads(said)}


def nobody_speaks_for_another_host(walk: Walk, port: int) -> None:
    """With elm's login a word under oak's name goes nowhere; nor does one without any login."""
    line = f"-h oak -p {port} --cafile /srv/mam/tls/ca.pem -V mqttv311"
    topic = "mam/realm/nodes/oak/1/status"

    def login(host: str) -> str:
        return f'{line} -u {host} -P "$(cat /srv/mam/{host}.mq)"'

    walk.ask("elm", f"mosquitto_pub {login('elm')} -q 1 -r -t {topic} -m forged")
    unknown = walk.ask("elm", f"mosquitto_pub {line} -q 1 -r -t {topic} -m forged")
    assert unknown.returncode != 0
    told = walk.ask("oak", f"mosquitto_pub {login('oak')} -q 1 -r -t {topic} -m true")
    assert told.returncode == 0, told.stderr
    heard = walk.ask("elm", f"mosquitto_sub {login('elm')} -q 1 -W 30 -C 1 -t 'mam/+/nodes/oak/#'")
    assert heard.stdout.split() == ["true"], heard.stderr


def a_worker_cannot_change_tables(walk: Walk) -> None:
    """And what it says to the database nobody hears on the way."""
    url = "postgresql://elm@oak/jobs?options=-csearch_path%3Dmam"
    asking = f'export PGPASSWORD="$(cat /srv/mam/elm.db)"; unset PGHOST PGUSER; psql -At "{url}" -c'
    done = walk.ask("elm", f'{asking} "DROP TABLE jobs"')
    assert done.returncode != 0
    assert "must be owner" in done.stderr
    secret = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
    at_work = walk.ask("oak", f"psql -At -c \"{secret} WHERE usename = 'elm'\"")
    assert at_work.stdout.strip() == ("t" if walk.has_tls else "f")


def test_every_block_of_the_page_is_told_what_it_is() -> None:
    """One that nobody runs is named here: the firewall's."""
    text = PAGE.read_text(encoding="utf-8")
    fences = len(re.findall(r"^```\w*$", text, re.MULTILINE)) // 2
    assert fences == len(blocks()) + 1
    known: dict[str, Callable[..., None]] = {
        name.removeprefix("_"): getattr(Walk, name) for name in vars(Walk) if name[1:2].isalpha()
    }
    assert {block.verb for block in blocks()} <= known.keys()
