"""Sessions for tests: a workshop whose tmux server is its own, and gone when the test is over."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mam_core.cli.main import main
from mam_core.config import Config, load
from mam_core.operations.sessions import Seen, sessions
from mam_core.presence import worker_of
from mam_core.process_mark import ProcessMark
from mam_core.sessions import SessionFolder
from mam_core.wiring import open_tmux
from tests.support.patience import until_gone
from tests.support.repositories import git, new_repository
from tests.support.supervision import with_word
from tests.support.tmux import new_socket_name, private_tmux
from tests.support.working import Workshop


class Said(NamedTuple):
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


class SessionShop(Workshop):
    """One project folder with a tmux server of its own; commands are given from inside it."""

    def __init__(self, folder: Path, capture: Any) -> None:
        super().__init__(folder)
        self.socket = new_socket_name()
        self._capture = capture

    @property
    def config(self) -> Config:
        if self._config is None:
            _ = super().config
            place = self.folder / "mam.toml"
            place.write_text(f'{place.read_text()}[tmux]\nsocket = "{self.socket}"\n')
            self._config = load(str(place))
        return self._config

    # -- commands --------------------------------------------------------------------------

    def say(self, *words: str) -> Said:
        """A command in this very process."""
        self.settle()
        self._capture.readouterr()
        code = main(list(words))
        out, err = self._capture.readouterr()
        assert "Traceback" not in err
        assert "mistake in mam" not in err
        return Said(code, out, err)

    def ok(self, *words: str) -> Said:
        said = self.say(*words)
        assert said.code == 0, said.err
        return said

    def spawn(self, name: str, agent: str, *words: str) -> Said:
        return self.ok("spawn", "--agent-session", f"tmux:{name}", "--agent", agent, *words)

    # -- what there is ---------------------------------------------------------------------

    def tmux(self, *words: str) -> str:
        """Our own server is asked, and no other."""
        command = ["tmux", "-L", self.socket, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout.strip()

    def in_tmux(self) -> list[str]:
        return self.tmux("list-sessions", "-F", "#{session_name}").split()

    @property
    def kept(self) -> SessionFolder:
        return SessionFolder(str(self.path))

    def seen(self) -> dict[str, Seen]:
        server = open_tmux(str(self.path), self.config)
        return {one.name: one for one in sessions(self.registry, str(self.path), server.panes)}

    def words(self) -> dict[str, str]:
        return {name: one.words for name, one in self.seen().items()}

    def worker_in(self, name: str) -> ProcessMark:
        mark = worker_of(self.kept, name)
        assert mark is not None
        return mark

    def at_work_here(self) -> list[int]:
        """Every living process that was told of this registry."""
        return [pid for pid in with_word(str(self.path)) if pid != os.getpid()]

    def until_at_rest(self) -> None:
        until_gone(self.at_work_here)

    def server_pid(self) -> int:
        return int(self.tmux("display-message", "-p", "#{pid}"))

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.ok("sessions", "--json").out)
        return found

    def close(self) -> None:
        self.tmux("kill-server")
        self.until_at_rest()
        super().close()


@contextmanager
def session_shop(folder: Path, capture: Any) -> Iterator[SessionShop]:
    with private_tmux():
        shop = SessionShop(folder, capture)
        try:
            yield shop
        finally:
            shop.close()


def repository(folder: Path) -> Path:
    """A repository with one commit, and a folder in it."""
    new_repository(folder, readme="readme\n")
    (folder / "src").mkdir()
    (folder / "src" / "main").write_text("main\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "second")
    return folder
