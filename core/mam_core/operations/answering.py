"""What a host tells others about jobs that it runs or ran: looked up as it would be here."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mam_core.config import Config
from mam_core.nodes.answerer import Answerer, Identity
from mam_core.nodes.asking import Kind, Question
from mam_core.registry import Registry
from mam_core.wiring import client_for, open_registry, realm_key

if TYPE_CHECKING:
    from mam_core.operations.panes import Panes

#: Of an output log at once; as base64 it must fit into an answer.
PIECE_BYTES = 96 * 1024


def answering(registry: Registry, registry_path: str, config: Config) -> Answerer:
    """Answer other hosts while the block lasts; a host that cannot works on all the same."""

    def identity() -> Identity:
        with open_registry(registry_path, config=config) as mine:
            with mine.store.transaction(create=True):
                pass  # a worker that came before the first job would go by a name that passes
            return Identity(mine.store.realm, realm_key(mine, registry_path))

    return Answerer(
        lambda: client_for(registry_path, config),
        registry_path,
        identity,
        registry.node,
        _Looks(registry_path, config).look,
    )


class _Looks:
    """On the answerer's own thread, with a registry and a look at tmux of its own."""

    def __init__(self, registry_path: str, config: Config) -> None:
        self._path = registry_path
        self._config = config

    @cached_property
    def _panes(self) -> Panes:
        from mam_core.operations.panes import Panes

        return Panes(self._path, self._config)

    def look(self, asked: Question) -> Mapping[str, Any]:
        # Loaded when somebody asks, which most workers never see.
        from mam_core.operations.asked import asked as questions_of
        from mam_core.operations.panes import lines_of
        from mam_core.operations.why import why

        job_id, panes = asked.job_id, self._panes
        with open_registry(self._path, config=self._config) as registry:
            if asked.kind is Kind.OUTPUT:
                return _output(registry, asked)
            if asked.kind is Kind.SCREEN:
                colours = bool(asked.given.get("colours"))
                return {"lines": lines_of(registry, job_id, panes, colours=colours)}
            if asked.kind is Kind.ASKED:
                questions = questions_of(registry, job_id, panes)
                return {"questions": [one.to_dict() for one in questions]}
            told = why(registry, job_id, registry_path=self._path, panes=panes.facts)
            return {"sentences": told.sentences}


def _output(registry: Registry, asked: Question) -> Mapping[str, Any]:
    from mam_core.operations.output import Place, attempts_with_output, read_output

    given = asked.given
    attempts = attempts_with_output(registry, asked.job_id)
    attempt = given.get("attempt") or (attempts[-1] if attempts else 0)
    after = Place(given["file"], given["offset"]) if "file" in given else None
    limit = min(PIECE_BYTES, max(0, given.get("limit", PIECE_BYTES)))
    piece = read_output(registry, asked.job_id, attempt, after, limit)
    return {
        "attempts": attempts,
        "attempt": attempt,
        "data": base64.b64encode(piece.data).decode("ascii"),
        "place": list(piece.place),
        "skipped": piece.skipped,
        "is_anew": piece.is_anew,
        "size": piece.size,
    }
