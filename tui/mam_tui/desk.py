"""What every screen works with: the board, the registry's place, the settings, and the deeds.

A deed is one act of the operator: a verb of the core, run on a thread with a
registry handle of its own, its outcome kept with the command line that would do
the same.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.operations.outcome import Outcome
from mam_core.operations.panes import Panes
from mam_core.safe_text import clip, one_line
from mam_core.wiring import open_registry
from mam_tui.attention.needing import Needing
from mam_tui.columns import BY_URGENCY, sort_key
from mam_tui.model import Board, Order
from mam_tui.trail import Trail

if TYPE_CHECKING:
    from mam_core.operations.elsewhere import Elsewhere
    from mam_core.operations.evidence import Heard, HostsHeard, Services
    from mam_core.registry import Registry
    from mam_tui.bars.feed import BarFeed
    from mam_tui.nodes.rows import NodeList
    from mam_tui.sessions.rows import SessionList
    from mam_tui.travel.picture import Picture

THE_PAST = "this is the past; esc goes back to now"

_DEEDS_KEPT = 500
_LINES_TOLD = 5
_CHARS_TOLD = 300


class Deed(NamedTuple):
    """What was done, how it went, and how to do it without the console."""

    at: float
    sentences: tuple[str, ...]
    ok: bool
    command: str

    def told(self) -> str:
        """For a notice: as much of it as one reads in passing."""
        lines = list(self.sentences[:_LINES_TOLD])
        if (more := len(self.sentences) - _LINES_TOLD) > 0:
            lines.append(f"… and {more:,} more like this")
        command = clip(one_line(f"$ {self.command[: 2 * _CHARS_TOLD]}"), _CHARS_TOLD)
        return "\n".join([*(clip(one_line(line), _CHARS_TOLD) for line in lines), command])


class Desk:
    """One operator's console on one registry."""

    def __init__(
        self,
        registry_path: str,
        config: Config,
        *,
        config_path: str | None = None,
        allow_network: bool = False,
        read_only: bool = False,
        keys: Mapping[str, str] = MappingProxyType({}),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.registry_path = registry_path
        self.config = config
        self.config_path = config_path
        self.allow_network = allow_network
        self.read_only = read_only
        self.keys = keys  #: the operator's own, by action
        self.then = ""  #: a verb that is to be run when the console has been left
        self.clock = clock
        self.live = Board(sort_key, Order(BY_URGENCY))  #: kept up by the feed, whatever is shown
        self.past: Picture | None = None  #: while the operator looks at how it was
        self.needing = Needing(self.live, clock)
        self.panes = Panes(registry_path, config)  #: one look at tmux, for all who watch
        self._others: Elsewhere | None = None
        self._others_lock = threading.Lock()
        self._hosts: HostsHeard | None = None
        self.deeds: deque[Deed] = deque(maxlen=_DEEDS_KEPT)
        self.trail = Trail()  #: the way back from them

    @property
    def board(self) -> Board:
        """The one that is shown: of now, or of the past."""
        return self.live if self.past is None else self.past.board

    @property
    def others(self) -> Elsewhere:
        """One line to other hosts, for all who look at jobs there; made at the first question."""
        with self._others_lock:
            if self._others is None:
                from mam_core.operations.elsewhere import Elsewhere

                self._others = Elsewhere(self.registry_path, self.config)
            return self._others

    def hosts(self, registry: Registry) -> Sequence[Heard] | None:
        """The workers of all hosts, by one connection; made when somebody asks for them."""
        with self._others_lock:
            if self._hosts is None:
                from mam_core.operations.evidence import HostsHeard

                self._hosts = HostsHeard(self.registry_path, self.config)
        return self._hosts(registry)

    def services(self, registry: Registry) -> Services | None:
        """Who serves which label, for a look on a thread; None: nobody can tell."""
        from mam_core.operations.evidence import Services

        return Services(registry, self.registry_path, self.config, self.hosts)

    def close(self) -> None:
        """Nobody looks any more."""
        self.panes.close()
        if self._hosts is not None:
            self._hosts.close()
        if self._others is not None:
            self._others.close()

    @property
    def sessions(self) -> SessionList:
        return self.live_sessions if self.past is None else self.past.sessions

    def now(self) -> float:
        """The moment that is shown; ages are counted from it."""
        return self.clock() if self.past is None else self.past.at

    @property
    def refusal(self) -> str | None:
        """Why nothing at all can be changed from here; None when something can."""
        if self.past is not None:
            return THE_PAST
        return "this console is read-only" if self.read_only else None

    @cached_property
    def live_sessions(self) -> SessionList:
        """Made when they are first looked at: the board does without."""
        from mam_tui.sessions.columns import sort_key
        from mam_tui.sessions.rows import SessionList

        return SessionList(sort_key, Order("name"))

    @cached_property
    def nodes(self) -> NodeList:
        """Likewise."""
        from mam_tui.nodes.columns import sort_key
        from mam_tui.nodes.rows import NodeList

        return NodeList(sort_key, Order("name"))

    @cached_property
    def bars(self) -> BarFeed:
        """Attempts over time; made when a view of time is first looked at."""
        from mam_tui.bars.feed import BarFeed

        return BarFeed(self)

    def open_registry(self) -> Registry:
        return open_registry(
            self.registry_path, config=self.config, allow_network=self.allow_network
        )

    def do(
        self,
        words: Sequence[str],
        act: Callable[[Registry], Sequence[Outcome] | str],
        *,
        is_undo: bool = False,
    ) -> Deed:
        """Act, on whatever thread this is called; never raises what a person can make.

        `words` are what one would type after ``mam``. What takes an act back is itself none that
        could be taken back.
        """
        command = shlex.join(["mam", *words])
        if self.past is not None:  # asked for by a form that was opened before
            return self._did(Deed(self.clock(), (THE_PAST,), False, command))
        try:
            with self.open_registry() as registry:
                done = act(registry)
        except (MamError, OSError) as problem:
            return self._did(Deed(self.clock(), (str(problem),), False, command))
        except Exception as problem:  # never silent: nobody sees what an errand's thread prints
            mistake = f"this is a mistake in mam: {type(problem).__name__}: {problem}"
            return self._did(Deed(self.clock(), (mistake,), False, command))
        if isinstance(done, str):
            done = [Outcome("", True, done)]
        if not is_undo and any(one.ok for one in done):
            self.trail.did(words)
        sentences = tuple(outcome.message for outcome in done)
        return self._did(Deed(self.clock(), sentences, all(one.ok for one in done), command))

    def _did(self, deed: Deed) -> Deed:
        self.deeds.append(deed)
        return deed
