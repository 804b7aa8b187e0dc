"""What a person says to an agent at work: say, answer, interrupt, and how far each has come.

A message stands in the job's record until the worker of that attempt has delivered
it; so it reaches an agent on any host and over any store. That it was typed, that
it was submitted and that the agent took it are different facts, and each is
written down. The audit log keeps all of them, the record only what is needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from mam_core.errors import InvalidField, UnreadableRecord
from mam_core.record_checks import COUNT, TEXT, Kind, checked

#: Of one message, as UTF-8. The record is read and written often; a long text belongs in a file.
MAX_TEXT_BYTES = 64 * 1024
#: So many may wait for delivery; a worker takes a second for each at most.
MAX_UNFINISHED = 4
#: So many of the finished stay in the record: whoever waits for a receipt finds it there.
KEPT_FINISHED = 4
#: And so much of their text: the whole of it is in the audit log.
KEPT_CHARS = 200
_WORDS_CHARS = 500

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class MessageKind(StrEnum):
    """What a message is for."""

    SAY = "say"  #: one more turn
    ANSWER = "answer"  #: to what the agent asks just now
    INTERRUPT = "interrupt"  #: stop the turn, keep the agent


class Stage(StrEnum):
    """How far a message has come; the order is the order of these lines."""

    SENT = "sent"  #: in the record, not yet seen by the worker
    TYPED = "typed"  #: given to the agent's input
    SUBMITTED = "submitted"  #: and sent off there, as by Enter
    ACCEPTED = "accepted"  #: the agent has shown that it took it
    REFUSED = "refused"  #: it was not delivered, and will not be
    UNCONFIRMED = "unconfirmed"  #: it was given, and nothing shows that it was taken

    @property
    def is_finished(self) -> bool:
        return self in _FINISHED

    def follows(self, earlier: Stage) -> bool:
        """A finished message goes nowhere, and none goes back."""
        order = list(Stage)
        return not earlier.is_finished and order.index(self) > order.index(earlier)


_FINISHED = frozenset({Stage.ACCEPTED, Stage.REFUSED, Stage.UNCONFIRMED})


class Message(NamedTuple):
    """One message to the agent of one attempt; `n` counts those of a job, over all attempts."""

    n: int
    kind: MessageKind
    text: str
    by: str
    at: str
    attempt: int
    stage: Stage = Stage.SENT
    words: str = ""  #: why it was refused, or what shows that it was taken
    to: str = ""  #: the question that it answers; empty for the one that is open
    extra: Mapping[str, Any] = _NOTHING

    @property
    def is_finished(self) -> bool:
        return self.stage.is_finished

    @property
    def verdict(self) -> bool | None:
        """What an answer says: yes, no, or neither, when its text is the answer."""
        return _VERDICTS.get(self.text.strip().lower())

    def at_stage(self, stage: Stage, words: str = "") -> Message:
        new = self._replace(stage=stage, words=words[:_WORDS_CHARS] or self.words)
        if new.is_finished and len(new.text) > KEPT_CHARS:
            new = new._replace(text=new.text[: KEPT_CHARS - 1] + "…")
        return new

    def to_dict(self) -> dict[str, Any]:
        data = self._asdict() | {"kind": str(self.kind), "stage": str(self.stage)}
        del data["extra"]
        return {**data, **self.extra}

    @classmethod
    def from_dict(cls, data: Any) -> Message:
        if not isinstance(data, Mapping):
            raise UnreadableRecord("one of its messages is no object")
        known, extra = checked(data, _MESSAGE_KINDS)
        for name in ("n", "kind", "text", "attempt"):
            if name not in known:
                raise UnreadableRecord(f"one of its messages has no {name}")
        return cls(**{"by": "", "at": "", **known}, extra=extra)


class Receipt(NamedTuple):
    """What whoever talks to the agent has to say about message `n`."""

    n: int
    stage: Stage
    words: str = ""


_VERDICTS = {"y": True, "yes": True, "n": False, "no": False}


def _kind(value: Any) -> MessageKind:
    try:
        return MessageKind(value)
    except ValueError:
        raise TypeError from None


def _stage(value: Any) -> Stage:
    try:
        return Stage(value)
    except ValueError:
        raise TypeError from None


_MESSAGE_KINDS: dict[str, Kind] = {
    "n": COUNT,
    "kind": Kind("say, answer or interrupt", frozenset({str}), _kind),
    "text": TEXT,
    "by": TEXT,
    "at": TEXT,
    "attempt": COUNT,
    "stage": Kind("a stage of delivery", frozenset({str}), _stage),
    "words": TEXT,
    "to": TEXT,
}


# -- the messages of a record ----------------------------------------------------------------


def unfinished(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if not message.is_finished]


def next_number(messages: Sequence[Message]) -> int:
    """The newest always stays in the record, so that its number is not used again."""
    return max((message.n for message in messages), default=0) + 1


def kept(messages: Sequence[Message]) -> tuple[Message, ...]:
    """What stays in the record: all that is on its way, and the newest of the rest."""
    finished = [message.n for message in messages if message.is_finished]
    dropped = set(sorted(finished)[:-KEPT_FINISHED])
    return tuple(message for message in messages if message.n not in dropped)


def closed(messages: Sequence[Message]) -> tuple[Message, ...]:
    """When their attempt is over: what was not given never will be, and of the rest nobody can
    tell any more whether the agent took it."""
    ended = []
    for message in messages:
        if message.stage is Stage.SENT:
            words = "the attempt ended before it was delivered"
            message = message.at_stage(Stage.REFUSED, words)
        elif not message.is_finished:
            words = "the attempt ended before the agent showed that it took it"
            message = message.at_stage(Stage.UNCONFIRMED, words)
        ended.append(message)
    return kept(ended)


# -- what may be said ------------------------------------------------------------------------


def checked_text(kind: MessageKind, text: str) -> str:
    """The text as it is delivered. Raises `InvalidField` for one that cannot be."""
    if len(text) > MAX_TEXT_BYTES:  # before it is looked through: it may be a gigabyte
        raise InvalidField(_too_long(len(text)))
    plain = without_controls(text)
    if kind is not MessageKind.INTERRUPT and not plain.strip():
        raise InvalidField("there is no text to be delivered")
    size = len(plain.encode())
    if size > MAX_TEXT_BYTES:
        raise InvalidField(_too_long(size))
    return plain


def _too_long(size: int) -> str:
    return (
        f"the text is too long: {size:,} bytes, and {MAX_TEXT_BYTES:,} can be delivered; "
        "put it into a file and name that"
    )


#: A whole sequence goes with its introducer: CSI, the strings (OSC, DCS …), and the short ones.
#: A string that does not end on its line is none: its words stay.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"
)
_CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def without_controls(text: str) -> str:
    """`text` without anything that a terminal obeys: it is words for an agent, and no keys.

    Escape sequences go as a whole, among them the one that would end a paste; of all other
    control characters (C0, DEL, C1) only line feed and tab stay, a carriage return becomes a
    line feed, and half of a character (a lone surrogate) the mark for one that was lost.
    """
    plain = _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    plain = plain.translate(_CONTROLS)  # also what an outer sequence leaves when an inner one goes
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
