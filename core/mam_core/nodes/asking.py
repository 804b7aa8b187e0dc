"""Questions to another host, and its answers: bounded, signed, about one job.

What a job printed and what its agent's screen shows is on the host that runs it. A question
goes to a topic of that host and names the topic that its answer is to come to; both
are signed with the key of the registry, which only those have who can open its store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from mam_core.errors import BadJobId, MamError
from mam_core.events.signature import SIGNATURE_KEY, sign, verify
from mam_core.nodes.status import level
from mam_core.records import check_job_id

SCHEMA_VERSION = 1
MAX_QUESTION_BYTES = 4 * 1024
MAX_ANSWER_BYTES = 256 * 1024
#: Older or newer than this a question is not answered; clocks differ, so it is generous.
OLD_SEC = 900.0


class Kind(StrEnum):
    """What may be asked. Nothing of it changes anything."""

    OUTPUT = "output"  #: what an attempt printed
    SCREEN = "screen"  #: what its agent's pane shows
    WHY = "why"  #: how it is shown, and by whose word
    ASKED = "asked"  #: what its agent waits for, in full


class BadQuestion(MamError):
    """What came in is no question, or nobody's who may ask."""

    title = "Bad question"


class NoAnswer(MamError):
    """The other host did not answer."""

    title = "No answer"


class Question(NamedTuple):
    """One, with where its answer goes."""

    id: str
    kind: Kind
    job_id: str
    given: Mapping[str, int]
    reply_to: str
    at: float

    def encode(self, key: str) -> bytes:
        return _signed({"schema_version": SCHEMA_VERSION, **self._asdict()}, key)

    @classmethod
    def parse(cls, payload: bytes, key: str, realm: str, now: float) -> Question:
        """Raises `BadQuestion`: also for one that asks to be answered somewhere else."""
        said = _verified(payload, key, MAX_QUESTION_BYTES)
        try:
            given = said["given"]
            if not all(isinstance(value, int) for value in given.values()):
                raise TypeError("given")
            asked = cls(
                str(said["id"]),
                Kind(said["kind"]),
                check_job_id(said["job_id"]),
                dict(given),
                str(said["reply_to"]),
                float(said["at"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, BadJobId) as problem:
            raise BadQuestion(f"it cannot be read: {problem!r}") from None
        if not asked.reply_to.startswith(replies_to(realm, "")) or set(asked.reply_to) & set("+#"):
            raise BadQuestion("its answer would go somewhere else")
        if not abs(now - asked.at) <= OLD_SEC:
            raise BadQuestion("it is from another time")
        return asked


class Answer(NamedTuple):
    """What was found, or the sentence that says why nothing was."""

    id: str  #: of the question
    job_id: str
    found: Mapping[str, Any] | None
    trouble: str = ""

    def encode(self, key: str) -> bytes:
        payload = _signed({"schema_version": SCHEMA_VERSION, **self._asdict()}, key)
        if len(payload) > MAX_ANSWER_BYTES:
            words = f"its answer has {len(payload)} bytes; the limit is {MAX_ANSWER_BYTES}"
            return Answer(self.id, self.job_id, None, words).encode(key)
        return payload

    @classmethod
    def parse(cls, payload: bytes, key: str) -> Answer:
        said = _verified(payload, key, MAX_ANSWER_BYTES)
        try:
            found = said["found"]
            if not (found is None or isinstance(found, dict)):
                raise TypeError("found")
            return cls(str(said["id"]), check_job_id(said["job_id"]), found, str(said["trouble"]))
        except (KeyError, TypeError, BadJobId) as problem:
            raise BadQuestion(f"it cannot be read: {problem!r}") from None


def asks_of(realm: str, node: str) -> str:
    """Where a host hears questions."""
    return f"mam/{level(realm)}/ask/{level(node)}"


def replies_to(realm: str, asker: str) -> str:
    return f"mam/{level(realm)}/replies/{level(asker)}"


def _signed(said: dict[str, Any], key: str) -> bytes:
    said[SIGNATURE_KEY] = sign(said, key)
    return json.dumps(said, separators=(",", ":")).encode("ascii")


def _verified(payload: bytes, key: str, limit: int) -> dict[str, Any]:
    if len(payload) > limit:
        raise BadQuestion(f"{len(payload)} bytes; the limit is {limit}")
    try:
        said = json.loads(payload)
    except (ValueError, RecursionError):
        raise BadQuestion("it is no JSON") from None
    if not isinstance(said, dict) or not verify(said, key):
        raise BadQuestion("it is not signed with the key of this registry")
    if said.get("schema_version") != SCHEMA_VERSION:
        raise BadQuestion(f"schema version {said.get('schema_version')!r}")
    return said
