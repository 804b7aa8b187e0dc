"""A project with a tmux server of its own, and a doctor who looks at it."""

from __future__ import annotations

import os
import pty
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mam_core.config import Config
from mam_core.doctor.checks import CHECKS
from mam_core.operations.doctor import (
    Answer,
    Area,
    Finding,
    Ground,
    Mended,
    Severity,
    examine,
    mend,
)
from mam_core.sessions import Session
from mam_core.tmux.names import socket_name
from tests.support.patience import eventually
from tests.support.sessions import SessionShop
from tests.support.tmux import private_tmux

SURROUNDINGS = (Area.MACHINE, Area.TERMINAL, Area.AGENTS)


class Clinic(SessionShop):
    """Whoever looks finds what the test has put out of step, and nothing else.

    Its tmux server is the one that a registry has when nobody chooses another; it is private by
    ``TMUX_TMPDIR``.
    """

    def __init__(self, folder: Path, capture: Any) -> None:
        super().__init__(folder, capture)
        self._answers: list[Answer] = []
        self._chosen = self.socket
        self.socket = socket_name(str(self.path))

    def share_server(self) -> None:
        """From now on the settings name a tmux server, as for several registries."""
        self.socket = self._chosen
        self._config = None

    @property
    def config(self) -> Config:
        if self.socket == self._chosen:
            return super().config
        return super(SessionShop, self).config

    @property
    def ground(self) -> Ground:
        return Ground(self.registry, str(self.path), self.config)

    def lose(self, *names: str) -> None:
        """Sessions on record that nobody has in tmux, as after a reboot."""
        agent, here = self.agent("good", "behaves"), str(self.workdir)
        for name in names:
            label, node = f"tmux:{name}", self.registry.node
            self.kept.put(
                Session(name, label, agent, "exec", here, here, "2026-01-01T00:00:00Z", "ann", node)
            )

    def examined(self) -> list[Answer]:
        """What the machine lacks is no matter of these stories, and costs time to find out."""
        checks = [check for check in CHECKS if check.area not in SURROUNDINGS]
        self._answers = examine(self.ground, checks=checks, pause=lambda _: None)
        return self._answers

    def findings(self) -> list[Finding]:
        """All that is not well here."""
        return [
            finding
            for answer in self.examined()
            for finding in answer.findings
            if finding.severity is not Severity.OK
        ]

    def only(self, what: str) -> Finding:
        """There is one finding, and it is about this."""
        findings = self.findings()
        assert [one.what for one in findings] == [what], findings
        return findings[0]

    def mend(self, finding: Finding, choice: int = 0) -> Mended:
        check = next(
            answer.check
            for answer in self._answers
            if finding.name in [one.name for one in answer.findings]
        )
        return mend(self.ground, check, finding, choice)

    def mended(self, finding: Finding, choice: int = 0) -> str:
        """It is mended, and what was said about that."""
        done = self.mend(finding, choice)
        assert done.is_done, done.words
        return done.words

    def mended_already(self, finding: Finding) -> bool:
        """Whoever comes second finds it done, and does nothing."""
        answers = self.examined()
        check = next(one.check for one in answers if one.findings[0].area is finding.area)
        return mend(self.ground, check, finding).words.endswith("in order by now")

    def until_well(self) -> None:
        eventually(lambda: not self.findings(), f"nothing is wrong: {self.findings()}")

    def until_found(self, what: str) -> Finding:
        eventually(lambda: what in [one.what for one in self.findings()], f"found: {what}")
        return next(one for one in self.findings() if one.what == what)


@contextmanager
def clinic(folder: Path, capture: Any) -> Iterator[Clinic]:
    with private_tmux():
        made = Clinic(folder, capture)
        try:
            yield made
        finally:
            made.close()


class Terminal:
    """A command on a terminal of its own, which a person answers."""

    def __init__(self, *words: str, cwd: Path, python: tuple[str, ...] = ()) -> None:
        self.shown = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            argv = [sys.executable, *python, "-m", "mam_core.cli.main", *words]
            os.execvpe(argv[0], argv, {**os.environ, "TERM": "xterm", "NO_COLOR": "1"})

    def _read(self) -> bool:
        while select.select([self._fd], [], [], 0)[0]:
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.shown += data.decode(errors="replace")
        return True

    def until(self, is_so: Callable[[str], bool], what: str) -> None:
        def looks() -> bool:
            self._read()
            return is_so(self.shown)

        eventually(looks, f"{what}; it shows {self.shown}")

    def answer(self, question: str, word: str) -> None:
        """Wait for the question, and say the word."""
        self.until(lambda shown: question in shown, question)
        self.shown = self.shown.partition(question)[2]
        self.type(word)

    def type(self, word: str) -> None:
        os.write(self._fd, word.encode() + b"\n")

    def code(self) -> int:
        while self._read():
            select.select([self._fd], [], [], 0.05)
        _, status = os.waitpid(self.pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)
