"""What is really sent to a terminal: colours, signs, and what happens where there is none."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mam_core.records import Status
from mam_core.wiring import open_registry
from mam_tui.plain import in_ascii, wants_ascii
from tests.console.staging import add, opened
from tests.support.patience import PATIENCE_SEC
from tests.support.pty_program import Tty
from tests.support.pty_program import tty as on_a_tty
from tests.support.watching import MAM


def surroundings(**environ: str) -> dict[str, str]:
    """A terminal of many colours, and nothing that the one of whoever runs the tests has set."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("LC_")}
    for name in ("COLORTERM", "NO_COLOR", "LANG", "TMUX"):
        kept.pop(name, None)
    return {**kept, "TERM": "xterm-256color", **environ}


def reading(path: str) -> list[str]:
    return [*MAM, "--registry-dir", path, "--read-only"]


@contextmanager
def tty(folder: Path, path: str, **environ: str) -> Iterator[Tty]:
    with on_a_tty(reading(path), folder, surroundings(**environ)) as made:
        yield made


def leave(seen: Tty) -> bytes:
    seen.type("\x11")  # ctrl+q
    assert seen.ended() == 0
    return seen.written


@pytest.fixture(autouse=True)
def _nothing_of_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


def sgr(written: bytes) -> set[str]:
    """The numbers that choose colours and weights."""
    found = re.findall(rb"\x1b\[([0-9;]*)m", written)
    return {number for one in found for number in _choices(one.decode())}


def _choices(numbers: str) -> list[str]:
    kinds = re.sub(r"([34]8);(2;\d+;\d+;\d+|5;\d+)", r"\1", numbers)
    return [number for number in kinds.split(";") if number]


class TestColoursAndSigns:
    def test_sixteen_colours_and_a_locale_without_utf_8(self, path: str, tmp_path: Path) -> None:
        """Only colours that the terminal has by name, and not one byte beyond ASCII."""
        with open_registry(path) as registry:
            add(registry, "Ein Prompt für 한국어")
        with tty(tmp_path, path, TERM="xterm", LC_ALL="C") as seen:
            seen.until("Ein Prompt f?r")
            written = leave(seen)
        assert not sgr(written) & {"38", "48"}
        assert sgr(written) & {str(number) for number in (*range(30, 38), *range(90, 98))}
        assert written.isascii()

    def test_no_colour_at_all(self, path: str, tmp_path: Path) -> None:
        with open_registry(path) as registry:
            add(registry, "Without colours")
        with tty(tmp_path, path, NO_COLOR="1") as seen:
            seen.until("Without colours")
            written = leave(seen)
        coloured = {*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)}
        assert not sgr(written) & {str(number) for number in coloured}
        assert "7" in sgr(written)  # the cursor is still seen

    @pytest.mark.parametrize(
        ("glyphs", "environ", "wants"),
        [
            ("auto", {}, False),
            ("auto", {"LANG": "de_DE.UTF-8"}, False),
            ("auto", {"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, True),
            ("auto", {"LC_CTYPE": "en_US.ISO-8859-1"}, True),
            ("auto", {"LC_ALL": "C.utf8"}, False),
            ("auto", {"TERM": "linux"}, True),
            ("unicode", {"LC_ALL": "C"}, False),
            ("ascii", {"LANG": "de_DE.UTF-8"}, True),
        ],
    )
    def test_when_signs_are_plain(self, glyphs: str, environ: dict[str, str], wants: bool) -> None:
        assert wants_ascii(glyphs, environ) is wants

    def test_what_has_no_sign_keeps_its_width(self) -> None:
        assert in_ascii("╭─ 별 ✖ …") == "+- ?? x ~"


class TestTwoConsoles:
    async def test_an_act_in_one_is_seen_in_the_other(self, path: str, tmp_path: Path) -> None:
        with open_registry(path) as registry:
            job_id = add(registry, "Between two consoles")
            with tty(tmp_path, path) as other:
                other.until("Between two consoles")
                async with opened(path) as seen:
                    await seen.press("c", "y")
                    await seen.until(lambda: seen.desk.deeds, "it is done")
                    assert registry.get(job_id).status is Status.CANCELLED
                    await seen.until(lambda: b"cancelled" in other.written, "seen over there")
                leave(other)


class TestNoTerminal:
    @pytest.mark.parametrize("which", ["input", "output", "error"])
    def test_one_sentence_says_what_is_none(self, which: str, tmp_path: Path) -> None:
        leader, follower = pty.openpty()
        try:
            done = subprocess.run(
                MAM,
                cwd=tmp_path,
                env={**os.environ, "TERM": "xterm"},
                stdin=subprocess.DEVNULL if which == "input" else follower,
                stdout=subprocess.PIPE if which == "output" else follower,
                stderr=subprocess.PIPE if which == "error" else follower,
                timeout=PATIENCE_SEC,
            )
            said = done.stderr or os.read(leader, 65536)
        finally:
            os.close(leader)
            os.close(follower)
        assert done.returncode == 2
        assert said.decode().replace("\r", "").count("\n") == 1
        assert f"the console needs a terminal, and standard {which} is none" in said.decode()
        assert not list(tmp_path.glob(".mam*"))
