"""Jobs on other hosts, looked at from here: asked of the host that runs or ran them."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.nodes.asker import Asker
from mam_core.nodes.asking import Kind, NoAnswer
from mam_core.operations.output import Piece, Place
from mam_core.records import Job
from mam_core.registry import Registry
from mam_core.wiring import client_for, realm_key

if TYPE_CHECKING:
    from mam_core.operations.asked import Asked

__all__ = ["Elsewhere", "NoAnswer", "Printed", "Senseless", "is_elsewhere"]

#: How long another host may take; whoever looks again asks again.
PATIENCE_SEC = 5.0

_Found = TypeVar("_Found")


class Senseless(MamError):
    """Another host gives an answer that makes no sense."""

    title = "Senseless answer"


class Printed(NamedTuple):
    """A piece of what an attempt printed, and which attempts have any."""

    attempts: tuple[int, ...]
    attempt: int
    piece: Piece


def is_elsewhere(registry: Registry, job: Job) -> bool:
    """It runs, or ran last, on another host than this one."""
    return job.node is not None and job.node != registry.node


class Elsewhere:
    """One line to all other hosts, for any number of threads; `close` it.

    It is opened by the first question, and every answer is foreign: checked here, or text that
    whoever shows it makes harmless.
    """

    def __init__(self, registry_path: str, config: Config) -> None:
        self._registry_path = registry_path
        self._config = config
        self._lock = threading.Lock()
        self._asker: Asker | None = None

    @property
    def dropped(self) -> int:
        """Answers that nobody waited for, or that could not be believed."""
        return self._asker.dropped if self._asker is not None else 0

    def output(
        self, registry: Registry, job: Job, attempt: int = 0, after: Place | None = None
    ) -> Printed:
        """Attempt 0 is the newest that has any. Raises `MamError`."""
        given = {"attempt": attempt}
        if after is not None:
            given |= {"file": after.file, "offset": after.offset}
        return self._ask(registry, job, Kind.OUTPUT, _printed, **given)

    def screen(self, registry: Registry, job: Job, *, colours: bool = False) -> list[str]:
        """The lines of its agent's pane."""
        return self._ask(registry, job, Kind.SCREEN, _texts("lines"), colours=int(colours))

    def why(self, registry: Registry, job: Job) -> list[str]:
        return self._ask(registry, job, Kind.WHY, _texts("sentences"))

    def asked(self, registry: Registry, job: Job) -> list[Asked]:
        """What its agent waits for, with all that it would do."""
        return self._ask(registry, job, Kind.ASKED, _questions)

    def close(self) -> None:
        with self._lock:
            asker, self._asker = self._asker, None
        if asker is not None:
            asker.close()

    def _ask(
        self,
        registry: Registry,
        job: Job,
        kind: Kind,
        read: Callable[[Mapping[str, Any]], _Found],
        **given: int,
    ) -> _Found:
        assert job.node is not None
        asker = self._opened(registry)
        found = asker.ask(job.node, kind, job.job_id, PATIENCE_SEC, **given)
        try:
            return read(found)
        except (KeyError, TypeError, ValueError) as problem:
            raise Senseless(
                f"{job.node} gives an answer that makes no sense: {problem!r}"
            ) from None

    def _opened(self, registry: Registry) -> Asker:
        with self._lock:
            if self._asker is None:
                self._asker = Asker(
                    lambda: client_for(self._registry_path, self._config),
                    registry.store.realm,
                    realm_key(registry, self._registry_path),
                )
            return self._asker


# -- what the other side says, read with care ----------------------------------------------------


def _printed(found: Mapping[str, Any]) -> Printed:
    file, offset = found["place"]
    piece = Piece(
        base64.b64decode(found["data"], validate=True),
        Place(int(file), int(offset)),
        int(found["skipped"]),
        bool(found["is_anew"]),
        int(found["size"]),
    )
    return Printed(tuple(map(int, found["attempts"])), int(found["attempt"]), piece)


def _texts(name: str) -> Callable[[Mapping[str, Any]], list[str]]:
    def read(found: Mapping[str, Any]) -> list[str]:
        if not isinstance(found[name], list):
            raise TypeError(name)
        return list(map(str, found[name]))

    return read


def _questions(found: Mapping[str, Any]) -> list[Asked]:
    from mam_core.operations.asked import Asked  # with all that reads screens

    if not isinstance(found["questions"], list):
        raise TypeError("questions")
    return [Asked.from_dict(one) for one in found["questions"]]
