"""Jobs on other hosts, looked at from here: asked of the host that runs or ran them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.nodes.asker import Asker
from mam_core.nodes.asking import Kind
from mam_core.operations.output import Piece, Place
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.wiring import client_for, realm_key

#: How long another host may take; whoever looks again asks again.
PATIENCE_SEC = 5.0


class Printed(NamedTuple):
    """A piece of what an attempt printed, and which attempts have any."""

    attempts: tuple[int, ...]
    attempt: int
    piece: Piece


class Elsewhere:
    """One line to all other hosts, opened by the first question; `close` it."""

    def __init__(self, registry: Registry, registry_path: str, config: Config) -> None:
        self._registry = registry
        self._registry_path = registry_path
        self._config = config
        self._asker: Asker | None = None

    def is_there(self, job: Job) -> bool:
        """It runs, or ran last, on another host."""
        return job.node is not None and job.node != self._registry.node

    def output(self, job: Job, attempt: int = 0, after: Place | None = None) -> Printed:
        """Attempt 0 is the newest that has any. Raises `MamError`."""
        given = {"attempt": attempt}
        if after is not None:
            given |= {"file": after.file, "offset": after.offset}
        found = self._ask(job, Kind.OUTPUT, **given)
        try:
            file, offset = found["place"]
            piece = Piece(
                base64.b64decode(found["data"]),
                Place(int(file), int(offset)),
                int(found["skipped"]),
                bool(found["is_anew"]),
                int(found["size"]),
            )
            return Printed(tuple(map(int, found["attempts"])), int(found["attempt"]), piece)
        except (KeyError, TypeError, ValueError) as problem:
            raise MamError(f"{job.node} gives an answer that makes no sense: {problem!r}") from None

    def screen(self, job: Job) -> list[str]:
        """The lines of its agent's pane: foreign text."""
        return self._texts(job, Kind.SCREEN, "lines")

    def why(self, job: Job) -> list[str]:
        return self._texts(job, Kind.WHY, "sentences")

    def close(self) -> None:
        if self._asker is not None:
            self._asker.close()

    def _texts(self, job: Job, kind: Kind, name: str) -> list[str]:
        found = self._ask(job, kind).get(name)
        if not isinstance(found, list):
            raise MamError(f"{job.node} gives an answer that makes no sense")
        return list(map(str, found))

    def _ask(self, job: Job, kind: Kind, **given: int) -> Mapping[str, Any]:
        assert job.node is not None
        if self._asker is None:
            self._asker = Asker(
                lambda: client_for(self._registry_path, self._config),
                self._registry.store.realm,
                realm_key(self._registry, self._registry_path),
            )
        return self._asker.ask(job.node, kind, job.job_id, PATIENCE_SEC, **given)
