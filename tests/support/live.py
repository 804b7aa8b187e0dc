"""A worker in a pane of a private tmux server, with a stand-in for an interactive agent."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mam_core.messages import Message, MessageKind, Stage
from mam_core.records import Job, Status
from tests.support.patience import eventually
from tests.support.supervision import stand_in
from tests.support.watching import MAM
from tests.support.working import LABEL, Workshop

AGENT = "stand-in"
TMUX = shutil.which("tmux") or "tmux"
#: How the stand-in's screen is read; replaces nothing of ours.
RULES = r"""
format = 1
version = 1
whole = true
seen_on = "the stand-in of the tests"

[box]
line = '❯(?: (?!\d\. )(?P<text>.*))?$'
more = ' {2,3}(?P<text>\S.*)'
above = '─{20}'
below = '─{20}'

[menu]
line = '(?:(?P<mark>❯)|\s)\s(?P<number>\d)\. (?P<words>.+)$'
press = "number"
top = '─{20}'
yes = 'Yes'
no = 'No'

[[rule]]
name = "trust dialog"
state = "waiting"
dialog = "trust"
priority = 90
box = false
menu = true
if = [{ in = "bottom", lines = 5, line = 'Trust this folder' }]

[[rule]]
name = "permission"
state = "waiting"
dialog = "permission"
priority = 80
box = false
menu = true
if = [{ in = "bottom", lines = 5, line = '.*\?$' }]

[[rule]]
name = "working"
state = "working"
priority = 70
box = true
if = [{ in = "below", lines = 2, line = 'status: working' }]

[[rule]]
name = "interrupted"
state = "idle"
priority = 60
box = true
if = [{ in = "above", lines = 1, line = '\* interrupted' }]

[[rule]]
name = "ready"
state = "idle"
priority = 50
box = true
if = [{ in = "below", lines = 2, line = 'status: ready' }]
"""


class LiveShop(Workshop):
    """A workshop whose worker lives in a pane."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.socket = f"mam-test-{secrets.token_hex(6)}"
        self._path = os.environ["PATH"]
        self.set(heartbeat_sec=0.5, sweep_sec=0.5)
        rules = folder / "xdg" / "mam" / "screens"
        rules.mkdir(parents=True)
        (rules / f"{AGENT}.toml").write_text(RULES)

    def stand_in(self, *words: str, stream: str = "codex-json") -> None:
        """Its channel is the one of codex, unless its stream is plain: then it has none."""
        self.agent(AGENT, "interactive", *words, mode="interactive", stream=stream)

    def shows(self, name: str, program: str, screen: Path) -> Path:
        """An agent `name` whose program is called `program`, and stands at a recorded screen.

        The answer is the file of the keys that reach it.
        """
        place, keys = self.folder / "bin" / program, self.folder / "keys"
        place.parent.mkdir()
        stands = stand_in("shows_screen", str(screen), str(keys), self.word)
        place.write_text(f'#!/bin/sh\nexec {shlex.join(stands)} "$@"\n')
        place.chmod(0o755)
        self.agent(name, place, mode="interactive")
        return keys

    def order(self, *lines: str, **fields: Any) -> str:
        """A job whose prompt is these lines."""
        return self.add(AGENT, "\n".join(lines) + "\n", **fields)

    def let_go(self) -> None:
        """What works ``until go`` is through with that."""
        (self.workdir / "go").touch()

    # -- the pane --------------------------------------------------------------------------

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            [TMUX, "-L", self.socket, "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PATH": self._path},  # a pane has the PATH of who makes it
        )
        return done.stdout

    def counted_tmux(self) -> Path:
        """From now on the worker's tmux writes its words down, a line for each process."""
        place, log = self.folder / "counted" / "tmux", self.folder / "tmux-started"
        place.parent.mkdir()
        place.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {TMUX} "$@"\n')
        place.chmod(0o755)
        self._path = f"{place.parent}:{self._path}"
        return log

    def open(self, *words: str, agent: str = AGENT, cols: int = 160, rows: int = 40) -> None:
        """``mam work`` in a pane of its own."""
        self.settle()
        environ = f"XDG_CONFIG_HOME={self.folder / 'xdg'}"
        work = [*MAM, "work", "--label", LABEL, "--agents", agent, *words]
        self.tmux(
            *("new-session", "-d", "-s", "live", "-x", str(cols), "-y", str(rows)),
            *("-c", str(self.folder), "-e", environ, *work),
            *(";", "set-option", "-g", "remain-on-exit", "on"),
        )

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "live")

    def until_shown(self, words: str) -> str:
        eventually(lambda: words in self.screen(), f"the pane shows {words}: {self.screen()}")
        return self.screen()

    @property
    def worker_pid(self) -> int:
        return int(self.tmux("display-message", "-p", "-t", "live", "#{pane_pid}"))

    # -- what is known of it ---------------------------------------------------------------

    def ended(self, job_id: str) -> Job:
        return self.until_status(job_id, Status.COMPLETED, Status.ERROR, Status.CANCELLED)

    def stages(self, job_id: str) -> list[str]:
        return [line["stage"] for line in self.audit(job_id, "prompt_delivery")]

    def states(self, job_id: str) -> list[tuple[str, str]]:
        told = [one["data"] for one in self.told(job_id) if one["event"] == "state"]
        return [(data["state"], data["words"]) for data in told]

    def until_state(self, job_id: str, state: str, words: str = "") -> None:
        def is_so() -> bool:
            return any(one == state and words in said for one, said in self.states(job_id))

        eventually(is_so, f"{job_id} is {state}: {self.states(job_id)}")

    def until_receipt(self, job_id: str, message: Message) -> Message:
        def found() -> Message | None:
            ours = [one for one in self.job(job_id).messages if one.n == message.n]
            return ours[0] if ours and ours[0].is_finished else None

        eventually(lambda: found() is not None, f"message {message.n} is finished")
        receipt = found()
        assert receipt is not None
        return receipt

    def send(self, job_id: str, kind: MessageKind, text: str = "") -> Message:
        return self.until_receipt(job_id, self.registry.send(job_id, kind, text))

    def until_submitted(self, job_id: str, message: Message) -> None:
        """It was sent off by Enter; whether it is taken shows later."""
        eventually(lambda: Stage.SUBMITTED in self.receipts(job_id, message), "Enter was pressed")

    def receipts(self, job_id: str, message: Message) -> list[Stage]:
        lines = self.audit(job_id, "message_receipt")
        return [Stage(line["stage"]) for line in lines if line["message"] == message.n]

    def close(self) -> None:
        with suppress(subprocess.CalledProcessError):  # none was started
            place = self.tmux("display-message", "-p", "#{socket_path}").strip()
            self.tmux("kill-server")
            Path(place).unlink(missing_ok=True)
        super().close()


@contextmanager
def live_shop(folder: Path) -> Iterator[LiveShop]:
    made = LiveShop(folder)
    try:
        yield made
    finally:
        made.close()


__all__ = ["AGENT", "LiveShop", "live_shop"]
