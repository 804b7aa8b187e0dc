"""Answer what an agent asks: only what is open, and the very question that was looked at.

The questions are read from the job's own events, so that they can be answered from
any host that has those. An answer carries the name of its question: if that is
settled meanwhile, no other question gets the yes that was meant for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from mam_core.agents.signs import AgentState, Sign
from mam_core.errors import TransitionRefused
from mam_core.events.event import Event, EventName
from mam_core.events.missed import find
from mam_core.messages import MessageKind
from mam_core.operations.asked_in_full import asked_in_full
from mam_core.operations.delivery import Wait, delivered, send
from mam_core.operations.outcome import Outcome
from mam_core.records import Job, Status
from mam_core.registry import Registry
from mam_core.rights import Right

#: So far back in a job's events a question is looked for.
_LOOK_BACK = 500
#: Said beside an open question, and no sign that it is settled.
_ASIDE = frozenset({EventName.LOG, EventName.HEARTBEAT})


class OpenQuestion(NamedTuple):
    """What an agent waits for; without a name it is the one on its screen."""

    name: str
    words: str
    given: dict[str, Any] | None = None  #: in full, where it can be had
    number: str = ""  #: of the one on the screen, as its worker counts them

    @property
    def handle(self) -> str:
        """By which an answer says that it is meant."""
        return self.name or self.number

    def is_meant_by(self, words: str) -> bool:
        """The first letters of a name will do; a number is a number, or none was said."""
        return self.name.startswith(words) if self.name else words in ("", self.number)

    def to_dict(self) -> dict[str, Any]:
        return {"question": self.handle, "words": self.words, "input": self.given}


def answer(
    registry: Registry, job_id: str, text: str, wait: Wait, *, question: str = ""
) -> Outcome:
    """Raises when there is nothing to be answered, or several things and none was named."""
    registry.check_allowed(Right.ANSWER, job_id)
    chosen = _chosen(job_id, open_questions(registry, job_id), question)
    kind = MessageKind.ANSWER
    sent = send(registry, job_id, kind, text, to=chosen.handle, about=chosen.words)
    return delivered(registry, [sent], wait)[0]


def open_questions(registry: Registry, job_id: str) -> list[OpenQuestion]:
    """What the job's agent waits for just now, the oldest first."""
    job = registry.get(job_id)
    if job.status is not Status.RUNNING:
        raise TransitionRefused(f"job {job_id} is {job.status}: it waits for no answer")
    return still_open(_events(registry, job))


def in_full(registry: Registry, job_id: str) -> list[OpenQuestion]:
    """The same, each with all of what its agent would do."""
    job = registry.get(job_id)
    return [
        one._replace(given=asked_in_full(registry, job, one.name) if one.name else None)
        for one in open_questions(registry, job_id)
    ]


def still_open(events: Iterable[Event]) -> list[OpenQuestion]:
    """Of one attempt's events, in their order."""
    named: dict[str, OpenQuestion] = {}
    on_screen: OpenQuestion | None = None
    told: OpenQuestion | None = None  #: by the agent itself, which names none
    for event in events:
        name, sign = str(event.data.get("question") or ""), None
        if event.event == EventName.STATE:
            sign = Sign.from_dict(event.data)
            named.pop(str(event.data.get("settled") or ""), None)
        if event.event == EventName.PERMISSION_REQUIRED and not name:
            told = OpenQuestion("", event.detail)
        elif event.event not in _ASIDE:
            told = None
        if sign is not None and sign.state is not AgentState.WAITING:
            named.clear()
        if sign is not None:
            waits = sign.state is AgentState.WAITING and not named and not name
            number = str(event.data.get("asked") or "")
            on_screen = OpenQuestion("", sign.words, number=number) if waits else None
        is_asked = event.event == EventName.PERMISSION_REQUIRED or sign is not None
        if name and is_asked:
            named.setdefault(name, OpenQuestion(name, event.detail))
    unnamed = [one for one in (on_screen or told,) if one is not None]
    return list(named.values()) or unnamed


def _events(registry: Registry, job: Job) -> list[Event]:
    if not job.last_seq:
        return []
    first = max(1, job.last_seq - _LOOK_BACK + 1)
    found = find(registry.store, {job.job_id: range(first, job.last_seq + 1)})
    events = [message.event for message in found.get(job.job_id, [])]
    return [event for event in events if event.attempt == job.attempt]


def _chosen(job_id: str, questions: list[OpenQuestion], name: str) -> OpenQuestion:
    if not questions:
        raise TransitionRefused(f"job {job_id} waits for no answer")
    fitting = [one for one in questions if one.is_meant_by(name)]
    if len(fitting) == 1:
        return fitting[0]
    there = "; ".join(f"{one.handle or '-'}: {one.words}" for one in questions)
    if not fitting:
        raise TransitionRefused(f"job {job_id} has no open question {name[:60]!r}: {there}")
    raise TransitionRefused(
        f"job {job_id} has {len(fitting)} open questions, say which by --question: {there}"
    )
