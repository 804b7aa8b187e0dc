"""A worker's hold on its own pane: look at it, paste into it, press a key.

Text is pasted from a buffer, never typed by key names: what is pasted arrives byte for byte
(``-r``), between the marks of a bracketed paste where the agent asked for these (``-p``).
Acts are few, and a process each; looks are many, and go through one lasting client.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
from collections.abc import Sequence
from contextlib import suppress

from mam_core.tmux.command import Address, ask
from mam_core.tmux.control import captured
from mam_core.tmux.facts import Capture, TmuxFailed, UnsafePaste
from mam_core.tmux.formats import checked_pane
from mam_core.tmux.labels import label_words
from mam_core.tmux.lasting import LastingClient

#: Ends a bracketed paste: what follows it would count as keys that were pressed. Terminals
#: know it in two spellings, with the two-byte and with the one-byte introducer.
_PASTE_END = re.compile(rb"(\x1b\[|\x9b|\xc2\x9b)201~")

_KEY = re.compile(
    r"(?:[CMS]-){0,3}(?:[!-~]|Enter|Escape|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End"
    r"|PageUp|PageDown|DC|IC|F(?:[1-9]|1[0-2]))"
)


#: A server that knows neither ``paste-buffer -S`` nor a client that may only read.
_BEFORE_3_7 = r"#{m/r:^3\.[2-6]([^0-9]|$),#{version}}"

_DONE = "done"


class PaneHand:
    """Of the pane `pane_id` on the server that ``$TMUX`` names."""

    def __init__(self, tmux_env: str, pane_id: str) -> None:
        # "path,pid,session": a path may hold commas itself.
        path = tmux_env.rsplit(",", 2)[0]
        if not os.path.isabs(path):
            raise TmuxFailed("this is no pane of tmux: $TMUX names no server")
        self._address = Address("-S", path)
        self.pane_id = checked_pane(pane_id)
        self._client = LastingClient(self._address, beside=pane_id)

    def close(self) -> None:
        """The client goes; whoever looks again gets another."""
        self._client.close()

    def capture(self, *, colours: bool = False, lines_back: int = 0) -> Capture:
        found = captured(self._client, [self.pane_id], colours=colours, lines_back=lines_back)
        if self.pane_id not in found:
            raise TmuxFailed(f"there is no pane {self.pane_id}")
        return found[self.pane_id]

    def paste(self, text: bytes) -> None:
        """Exactly these bytes, as one paste; UnsafePaste if they would end it themselves."""
        if _PASTE_END.search(text):
            raise UnsafePaste
        if not text:
            return  # tmux keeps no empty buffer
        name = f"mam-{secrets.token_hex(8)}"
        load = ("load-buffer", "-b", name, "-", ";")
        try:
            # Newer servers rewrite control characters, unless -S says not to.
            self._act("paste-buffer -d -p -r", "-S", f"-b {name}", load, text)
        except TmuxFailed:
            with suppress(TmuxFailed):  # it may never have got there
                ask(self._address, "delete-buffer", "-b", name)
            raise

    def press(self, key: str) -> None:
        """One key by tmux's name for it, for example ``Enter``, ``Escape`` or ``C-c``."""
        if not _KEY.fullmatch(key):
            raise TmuxFailed(f"{key!r} is no key")
        # Newer servers refuse a key where somebody is attached to look on only. With -c it is
        # a key of another client, and of none where no client has that name.
        self._act("send-keys", "-c mam-nobody", f"-- {shlex.quote(key)}")

    def label(
        self,
        job_id: str | None = None,
        attempt: int | None = None,
        title: str | None = None,
    ) -> None:
        if words := label_words(self.pane_id, job_id, attempt, title):
            ask(self._address, *words)

    def _act(
        self,
        command: str,
        since_3_7: str,
        arguments: str,
        before: Sequence[str] = (),
        stdin: bytes = b"",
    ) -> None:
        """A command for the pane, if its process lives, in one step with the look at that.

        `since_3_7` are flags that older servers do not know.

        tmux 3.3 crashes, and every session with it, when a dead pane is pasted into.
        Whoever scrolls in the pane has it in copy mode, which swallows keys and takes
        a paste without its brackets: so that is left first.
        """
        lives = f"#{{==:#{{pane_id}} #{{pane_dead}},{self.pane_id} 0}}"
        old = f"{command} -t {self.pane_id} {arguments}"
        new = f"{command} {since_3_7} -t {self.pane_id} {arguments}"
        choice = shlex.join(("if-shell", "-F", _BEFORE_3_7, old, new))
        act = f"copy-mode -q -t {self.pane_id} ; {choice} ; display-message -p {_DONE}"
        words = ("if-shell", "-F", "-t", self.pane_id, lives, act)
        if ask(self._address, *before, *words, stdin=stdin).strip() != _DONE.encode():
            raise TmuxFailed(f"pane {self.pane_id} is gone, or its process has ended")
