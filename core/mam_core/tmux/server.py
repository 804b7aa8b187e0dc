"""The registry's own tmux server, acted on through libtmux: start, label, end.

Sessions are started in one step: tmux refuses a twin, and there is no moment in which a
session runs without its label. Targets are exact. What lacks our mark is never ended, and the
server itself never is: it goes by itself when its last session has.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from mam_core.disk import Folder
from mam_core.moving_in import move_in
from mam_core.safe_text import one_line, safe
from mam_core.tmux import names, settings
from mam_core.tmux.command import (
    PATIENCE_SEC,
    Address,
    ask,
    failure,
    listens,
    literal,
    program,
    surroundings,
    word,
)
from mam_core.tmux.deaths import FOLDER, deaths_path, make_room
from mam_core.tmux.facts import (
    BadSessionName,
    ForeignSession,
    NoServer,
    NoSuchSession,
    PaneFact,
    SessionExists,
    SessionPlan,
    TmuxFailed,
)
from mam_core.tmux.formats import panes_format, read_panes
from mam_core.tmux.labels import label_words
from mam_core.tmux.reaping import NUDGE, Overlooked
from mam_core.tmux.turnstile import alone

if TYPE_CHECKING:
    import libtmux

_CONFIGURATION = "tmux.conf"

# Also on a server that mam did not start; tmux itself sets its own two.
_UNSET = [name for name in settings.NOT_INHERITED if not name.startswith("TMUX")]

# `exec` keeps the pid that tmux knows; the words after it arrive as they are.
_START = f'unset {" ".join(_UNSET)}; exec "$@"'

_FOREIGN = "not ours"


class TmuxServer:
    """The door that acts. Made without a look at tmux; TmuxMissing comes with the first act."""

    def __init__(self, registry_path: str, socket_name: str) -> None:
        self._registry_path = os.path.realpath(registry_path)
        self.socket = socket_name
        self._address = Address("-L", socket_name)
        self._overlooked = Overlooked()

    @property
    def is_running(self) -> bool:
        return listens(self._address)

    def spawn(self, plan: SessionPlan) -> PaneFact:
        """Start a session, labelled from its first moment; SessionExists if there is one."""
        names.checked(plan.name)
        _check(plan)
        program()  # TmuxMissing, before anything is left anywhere
        with alone(self._address):
            try:
                return self._new_session(plan)
            except NoServer:
                # The one that was there went with its last session just now.
                return self._new_session(plan)

    def _new_session(self, plan: SessionPlan) -> PaneFact:
        is_ours = self._prepare()
        target = f"={plan.name}:"
        mark = secrets.token_hex(8)
        environ = {"PATH": os.environ.get("PATH", os.defpath), **plan.environ}
        # A server that mam did not start keeps its settings, and gives its own environment.
        inherit = ("set-option", "-g", "update-environment", settings.inherited(os.environ), ";")
        done = self._libtmux().cmd(
            *(inherit if is_ours else ()),
            *("new-session", "-d", "-s", plan.name, "-n", plan.name),
            *("-x", str(plan.width), "-y", str(plan.height), "-c", word(literal(plan.cwd))),
            *(part for key, value in environ.items() for part in ("-e", word(f"{key}={value}"))),
            *("--", "/bin/sh", "-c", _START, "mam", *map(word, plan.argv)),
            *(";", "set-option", "-t", target, settings.SESSION_MARK, word(plan.label)),
            *(";", "set-option", "-p", "-t", target, "@session", word(plan.label)),
            *(";", "set-option", "-p", "-t", target, "@agent", word(plan.agent)),
            *(";", "set-option", "-p", "-t", target, "remain-on-exit", "on"),
            *(";", "set-hook", "-p", "-t", target, "pane-died", self._death_hook),
            *(";", "select-pane", "-t", target, "-T", word(literal(plan.label))),
            *(";", "if-shell", "-F", f"#{{{settings.SERVER_MARK}}}", "set -s exit-empty on"),
            *(";", "list-panes", "-t", target, "-F", panes_format(mark)),
        )
        if done.returncode != 0:
            raise _refusal(plan.name, " ".join(done.stderr))
        (pane,) = read_panes("\n".join(done.stdout).encode(), mark)
        return pane

    def panes(self) -> list[PaneFact]:
        """Every pane; none when no server runs."""
        try:
            panes = self._list()
            if self._overlooked.among(panes):
                panes = self._list(*NUDGE)
        except NoServer:
            return []
        return panes

    def end(self, name: str) -> None:
        """End the session of exactly this name, if it carries our mark."""
        names.checked(name)
        # Bounded, as libtmux is not; it also tells "no such session" from all other troubles.
        if not any(pane.session == name for pane in self.panes()):
            raise NoSuchSession(f"there is no session {name}")
        # One step: nobody can put another session in its place between the look and the end.
        with alone(self._address):
            done = self._libtmux().cmd(
                *("if-shell", "-F", "-t", f"={name}:", f"#{{{settings.SESSION_MARK}}}"),
                *(f"kill-session -t '={name}'", f"display-message -p '{_FOREIGN}'"),
            )
        if done.stdout == [_FOREIGN]:
            raise ForeignSession(f"session {name} was not started by mam, so mam does not end it")
        said = " ".join(done.stderr)
        if done.returncode != 0 and not isinstance(failure(said), NoServer):
            raise NoSuchSession(f"there is no session {name}: {one_line(said)}")

    def let_go(self) -> None:
        """A server of ours in which no session ever came to stand waits for one; from now on it
        goes when it is empty."""
        with suppress(NoServer):
            ask(
                self._address,
                *("if-shell", "-F", f"#{{{settings.SERVER_MARK}}}", "set -s exit-empty on"),
            )

    def label(
        self,
        pane_id: str,
        *,
        job_id: str | None = None,
        attempt: int | None = None,
        title: str | None = None,
    ) -> None:
        """Write on a pane what it works on; None leaves a word as it is, "" and 0 clear it."""
        if words := label_words(pane_id, job_id, attempt, title):
            ask(self._address, *words)

    def attach_argv(self, name: str) -> list[str]:
        """The command that shows a session; it works inside another tmux, too."""
        target = f"={names.checked(name)}"
        attach = ["attach-session", "-E", "-t", target]
        return ["env", "-u", "TMUX", "-u", "TMUX_PANE", program(), *self._address.words, *attach]

    def _list(self, *before: str) -> list[PaneFact]:
        mark = secrets.token_hex(8)
        words = (*before, "list-panes", "-a", "-F", panes_format(mark))
        return read_panes(ask(self._address, *words), mark)

    # -- the server's start ---------------------------------------------------------------------

    @property
    def _death_hook(self) -> str:
        return settings.death_hook(deaths_path(self._registry_path))

    @property
    def _configuration(self) -> str:
        return os.path.join(self._registry_path, FOLDER, _CONFIGURATION)

    def _libtmux(self) -> libtmux.Server:
        # When it is imported it looks at the encoding of stdout, and a console that has taken that
        # over has put something in its place that has none.
        if not hasattr(sys.stdout, "encoding"):
            vars(sys.stdout)["encoding"] = "utf-8"
        import libtmux  # 120 ms, for those who act only

        return libtmux.Server(
            socket_name=self.socket, config_file=self._configuration, tmux_bin=program()
        )

    def _prepare(self) -> bool:
        """A server that answers, started if there is none; whether it has our configuration."""
        with (
            Folder.open(self._registry_path, create=True) as registry,
            _sessions_of(registry) as folder,
        ):
            make_room(folder)
            folder.write(_CONFIGURATION, settings.CONFIGURATION.encode())
        try:
            # libtmux waits for ever: a server that is wedged is found here, with a limit.
            mark = ask(self._address, "show-options", "-gqv", settings.SERVER_MARK)
        except NoServer:
            self._start()
            return True
        return mark.strip() == b"1"

    def _start(self) -> None:
        bare = {
            name: value
            for name, value in surroundings().items()
            if name in settings.SERVER_ENVIRONMENT
        }
        # Read by a command and not by `-f`: tmux forgets that file when a second client comes while
        # it starts, and goes again at once, being empty.
        argv = [program(), *self._address.words, "-f", os.devnull, "start-server"]
        argv += [";", "set-option", "-s", "exit-empty", "off", ";", "source-file", "-"]
        try:
            done = subprocess.run(
                argv,
                input=settings.CONFIGURATION.encode(),
                env=bare,
                cwd="/",
                capture_output=True,
                timeout=PATIENCE_SEC,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TmuxFailed(f"tmux did not start within {PATIENCE_SEC:g} s") from None
        if done.returncode != 0:
            said = one_line(done.stderr.decode(errors="replace"))
            raise TmuxFailed(f"tmux did not start: {said}")


def _sessions_of(registry: Folder) -> Folder:
    move_in(registry)
    return registry.subfolder(FOLDER, create=True)


def _check(plan: SessionPlan) -> None:
    if not plan.argv:
        raise TmuxFailed(f"session {plan.name} has nothing to run")
    if not (plan.label and plan.label.isprintable() and plan.agent.isprintable()):
        raise BadSessionName(
            f"the label of a session is printable text: {safe(plan.label)!r}, {safe(plan.agent)!r}"
        )
    if not os.path.isdir(plan.cwd):
        # tmux would silently start it in the home folder.
        raise TmuxFailed(f"session {plan.name} cannot start in {safe(plan.cwd)}: no such folder")


def _refusal(name: str, said: str) -> Exception:
    if "duplicate session" in said:
        return SessionExists(f"session {name} is there already")
    return failure(said)
