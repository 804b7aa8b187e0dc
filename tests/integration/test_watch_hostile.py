"""``mam watch`` on a real terminal, while strangers send whatever they like."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mam_core.events.embedded import Role, credentials
from tests.support.brokers import Ear, nothing_left
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.relays import none_left_behind
from tests.support.watching import MAM, Site, said

CLEAR, CLIPBOARD, TITLE = "\x1b[2J\x1b[H", "\x1b]52;c;ZXZpbA==\x07", "\x1b]0;mine\x07"
HOSTILE = [
    *(CLEAR, CLIPBOARD, TITLE, "\x1bP+q\x1b\\", "\x9b31m"),
    "\x07\x08\r\x0b\x0c\x00\x7f\x85\u2028\u2029",
    "\u202egpj.exe\u2066",
    "\u200b\ufeff\U000e0041\ufff9a\ufffb",
    "e" + "\u0301" * 500,
    "\ud800",
]
LONG = 900_000


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with nothing_left(tmp_path):
        made = Site(tmp_path, "nats")
        with none_left_behind(made.path):
            yield made
        made.close()


class Screen:
    """A command whose three streams are one terminal, and every byte that it wrote there."""

    def __init__(self, command: list[str], cwd: Path) -> None:
        self._ours, theirs = pty.openpty()
        try:
            self.process = subprocess.Popen(
                command, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs
            )
        finally:
            os.close(theirs)
        self._bytes = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def text(self) -> str:
        return bytes(self._bytes).decode()

    def code(self) -> int:
        code = self.process.wait(PATIENCE_SEC * 2)
        self._reader.join(PATIENCE_SEC)
        return code

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._ours, 65536)
            except OSError:  # the other side is closed
                break
            self._bytes += part
        os.close(self._ours)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.code()


@contextmanager
def on_a_terminal(site: Site, *words: str) -> Iterator[Screen]:
    screen = Screen([*MAM, "watch", *words], site.folder)
    try:
        eventually(lambda: "listening to" in screen.text, "it listens")
        yield screen
    finally:
        screen.end()


def shout(site: Site, job_id: str) -> int:
    """Every hostile text in every place that is shown; how many of the messages are events."""
    topic = f"python/mqtt/jobs/{job_id}/events"
    seq = 0

    def send(**more: Any) -> None:
        payload = json.loads(said(job_id, seq, "progress")) | more
        sent = ear.client.publish(topic, json.dumps(payload), qos=1)
        sent.wait_for_publish(PATIENCE_SEC)

    with Ear(site.port, credentials(str(site.path), Role.AGENT)) as ear:
        for text in HOSTILE:
            for where in ("detail", "timestamp"):
                seq = site.registry.next_seq(job_id)
                send(**{where: text, "data": {text: text}})
            for where in ("event", "job_id", "seq"):
                send(**{where: text})
            raw = text.encode("utf-8", "surrogatepass")
            ear.client.publish(topic, raw, qos=1).wait_for_publish(PATIENCE_SEC)
        seq = site.registry.next_seq(job_id)
        send(detail="x" * LONG)
    (site.path / f"{CLEAR.replace('/', '')}.json").write_text(CLEAR)
    return seq


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["lines", "json"])
def test_only_our_own_characters_reach_a_terminal(site: Site, words: list[str]) -> None:
    """Promise 7, N26: no byte of theirs moves a cursor, sets a title or fills a clipboard."""
    job_id = site.register()
    with on_a_terminal(site, job_id, *words) as screen:
        events = shout(site, job_id)
        seen = re.compile(rf"seq={events} |\"seq\": {events}, ")
        eventually(lambda: seen.search(screen.text), "the last of theirs")
        site.publish(job_id, "completed", detail="".join(HOSTILE[:-1]))
        assert screen.code() == 0
    shown = screen.text.replace("\r\n", "\n")
    assert not [c for c in shown if c != "\n" and not c.isprintable()]
    assert "\u0301" * 5 not in shown
    assert "Traceback" not in shown
    assert "mistake" not in shown
    if words:
        lines = [line for line in shown.splitlines() if not line.startswith("mam: ")]
        told = [json.loads(line) for line in lines]
        details = [each["event"]["detail"] for each in told if each["kind"] == "event"]
        assert details[::2][: len(HOSTILE)] == HOSTILE
        assert "x" * LONG in details
    else:
        assert max(map(len, shown.splitlines())) <= 2_000


def test_a_program_gets_all_of_a_long_detail(site: Site) -> None:
    """It is cut for people only."""
    job_id = site.register()
    with site.watching(job_id) as watched:
        site.publish(job_id, "progress", detail="x" * LONG)
        site.publish(job_id, "completed")
        assert watched.code() == 0
    assert watched.out[0].endswith("x" * LONG)
