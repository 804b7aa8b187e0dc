"""A look at every pane of the registry's server, by one lasting client."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence

from mam_core.tmux.command import Address, failure
from mam_core.tmux.control_client import Chain
from mam_core.tmux.control_parser import Reply
from mam_core.tmux.deaths import Deaths
from mam_core.tmux.facts import Capture, Death, PaneFact, TmuxFailed
from mam_core.tmux.formats import capture_words, panes_format, read_capture, read_panes
from mam_core.tmux.lasting import LIMIT_SEC, LastingClient
from mam_core.tmux.reaping import NUDGE, Overlooked

#: Panes in one round trip: enough for a screen full.
_BATCH = 32


class TmuxGlance:
    """The door that reads. Threads take turns."""

    def __init__(self, registry_path: str, socket_name: str, limit_sec: float = LIMIT_SEC) -> None:
        self._client = LastingClient(Address("-L", socket_name), limit_sec)
        self._lock = threading.Lock()
        self._deaths = Deaths(registry_path)
        self._overlooked = Overlooked()

    @property
    def client_pid(self) -> int | None:
        """Of the lasting client, for those who count processes."""
        return self._client.pid

    def panes(self) -> list[PaneFact]:
        panes = self._list()
        if self._overlooked.among(panes):
            panes = self._list(*NUDGE)
        return panes

    def capture(self, pane_id: str, *, colours: bool = False, lines_back: int = 0) -> Capture:
        found = self.captures([pane_id], colours=colours, lines_back=lines_back)
        if pane_id not in found:
            raise TmuxFailed(f"there is no pane {pane_id}")
        return found[pane_id]

    def captures(
        self, pane_ids: Sequence[str], *, colours: bool = False, lines_back: int = 0
    ) -> dict[str, Capture]:
        """Many panes in one round trip; a pane that is gone is left out."""
        found: dict[str, Capture] = {}
        for start in range(0, len(pane_ids), _BATCH):
            batch = pane_ids[start : start + _BATCH]
            found |= captured(self._client, batch, colours=colours, lines_back=lines_back)
        return found

    def deaths(self) -> list[Death]:
        """The panes that died since the last call, in order; asks the disk, not tmux."""
        with self._lock:
            return self._deaths.news()

    def close(self) -> None:
        self._client.close()
        with self._lock:
            self._deaths.close()

    def _list(self, *before: str) -> list[PaneFact]:
        mark = secrets.token_hex(8)
        chain = Chain.of([*before, "list-panes", "-a", "-F", panes_format(mark)])

        def read(answers: list[list[Reply]]) -> list[PaneFact]:
            reply = answers[0][-1]
            if reply.is_error:
                raise failure(b" ".join(reply.lines).decode(errors="replace"))
            return read_panes(b"\n".join(reply.lines), mark)

        return self._client.ask([chain], read)


def captured(
    client: LastingClient, pane_ids: Sequence[str], *, colours: bool, lines_back: int
) -> dict[str, Capture]:
    """In one round trip; a pane that is gone is left out."""
    mark = secrets.token_hex(8)
    chains = [
        Chain.of(capture_words(pane_id, mark, colours=colours, lines_back=lines_back))
        for pane_id in pane_ids
    ]

    def read(answers: list[list[Reply]]) -> dict[str, Capture]:
        return {
            pane_id: read_capture(said[0].lines, b"\n".join(said[1].lines), pane_id, mark)
            for pane_id, said in zip(pane_ids, answers, strict=True)
            if not said[-1].is_error
        }

    return client.ask(chains, read)
