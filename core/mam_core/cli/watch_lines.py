"""What ``mam watch`` prints: events on stdout, everything about them on stderr; or all as JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mam_core.cli.terminal import flush_stdout, is_terminal, put, say
from mam_core.clock import stamp
from mam_core.events.feed import EventHeard, Item, JobChanged, Notice, NoticeKind
from mam_core.operations.ending import Ending, How, Tally
from mam_core.records import Job
from mam_core.safe_text import clip, one_line, safe, safe_json
from mam_core.summaries import Unreadable

_EVENT_CHARS = 20

#: A detail may have a megabyte: a person is shown its beginning, a program gets it all.
_TERMINAL_CELLS = 2_000

#: Of one kind so many are said within the span, then their number.
_SHOWN = 5
_SPAN_SEC = 10.0


def event_line(heard: EventHeard) -> str:
    """``<timestamp> job=<id> seq=<n> <event padded to 20> <detail>``, the original's form."""
    event = heard.event
    # The sender's word, kept to one word: programs split these lines at their spaces.
    when = "T".join(safe(event.timestamp).split()) or stamp(time.time())
    name = f"{safe(event.event):<{_EVENT_CHARS}}"
    return f"{when} job={event.job_id} seq={event.seq} {name} {safe(event.detail)}"


class Lines:
    """For people, and for scripts of the original."""

    def __init__(self) -> None:
        self._sparing = Sparing()
        self._gone: set[str] = set()
        self._is_blind = False

    def tell(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, EventHeard):
                line = event_line(item)
                put([clip(line, _TERMINAL_CELLS) if is_terminal() else line])
            elif isinstance(item, Notice):
                self._note(item)
            else:
                self._changed(item)
        flush_stdout()

    def end(self, ending: Ending) -> None:
        if ending.how is not How.EVENT:  # that one stands on stdout
            self._sparing.say(ending.how, ending.words)

    def warn(self, sentence: str) -> None:
        say(f"warning: {sentence}")

    def close(self, endings: Mapping[str, Ending], tallies: Mapping[str, Tally]) -> None:
        """What was odd, once more, as one line a job."""
        self._sparing.close()
        for job_id, tally in tallies.items():
            if tally.is_odd:
                status = endings[job_id].status or endings[job_id].how
                say(f"job {job_id}: {status}; {counted(tally)}")

    def _note(self, notice: Notice) -> None:
        if notice.kind in (NoticeKind.DIRECTORY_LOST, NoticeKind.DIRECTORY_BACK):
            self._is_blind = notice.kind is NoticeKind.DIRECTORY_LOST
        text = _PREFIXES.get(notice.kind, "") + notice.text
        kind = f"{notice.kind}, {notice.reason}" if notice.reason else notice.kind
        self._sparing.say(kind, text, notice.times)

    def _changed(self, changed: JobChanged) -> None:
        job_id = safe(changed.job_id)
        if changed.job is None:
            if not self._is_blind and job_id not in self._gone:
                self._gone.add(job_id)
                self._sparing.say("gone", f"the record of job {job_id} is gone")
            return
        if job_id in self._gone:
            self._gone.discard(job_id)
            self._sparing.say("back", f"the record of job {job_id} is there again")
        if isinstance(changed.job, Unreadable):
            words = f"the record of job {job_id} cannot be read: {changed.job.error}"
            self._sparing.say("unreadable", words)


class JsonLines:
    """For programs: the feed as it is, an object a line."""

    def __init__(self) -> None:
        self._sparing = Sparing()

    def tell(self, items: Sequence[Item]) -> None:
        now = time.monotonic()
        for item in items:
            sys.stdout.write(safe_json(as_json(item, now)) + "\n")
        flush_stdout()

    def end(self, ending: Ending) -> None:
        if ending.is_timeout or ending.how in (How.GONE, How.WORD):
            self._sparing.say(ending.how, ending.words)  # what no record says

    def warn(self, sentence: str) -> None:
        say(f"warning: {sentence}")

    def close(self, endings: Mapping[str, Ending], tallies: Mapping[str, Tally]) -> None:
        """The lines were all that there is to say."""
        self._sparing.close()


def as_json(item: Item, now: float) -> dict[str, Any]:
    """One item, with its age; a record is shown without its secrets."""
    told: dict[str, Any]
    if isinstance(item, EventHeard):
        told = {"kind": "event", "job_id": item.event.job_id, "event": item.content}
        told |= {"origin": item.origin, "missing": item.missing}
    elif isinstance(item, Notice):
        told = {"kind": "notice", "job_id": item.job_id, "notice": item.kind, "text": item.text}
    else:
        told = {"kind": "job", "job_id": item.job_id, "job": _record(item.job)}
        told["origin"] = item.origin
    return told | {"age_sec": round(max(0.0, now - item.seen_at), 3)}


def _record(job: Job | Unreadable | None) -> dict[str, Any] | None:
    if isinstance(job, Unreadable):
        return {"job_id": job.job_id, "status": "unreadable", "error": job.error}
    return None if job is None else job.redacted()


def counted(tally: Tally) -> str:
    words = ["1 event" if tally.events == 1 else f"{tally.events} events"]
    for count, what in (
        (tally.filled, "read from the registry"),
        (tally.missing, "missing"),
        (tally.late, "late"),
        (tally.repeated, "repeated"),
        (tally.dropped, "dropped"),
    ):
        if count:
            words.append(f"{count} {what}")
    return ", ".join(words)


#: What a text alone would not say.
_PREFIXES = {NoticeKind.BROKER_DOWN: "no connection to the broker: "}


class Sparing:
    """Lines on stderr, few of a kind at a time: a storm must not bury what else is said."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[float, int, int]] = {}

    def say(self, kind: str, sentence: str, count: int = 1) -> None:
        """A line; `count` is how many things it speaks of."""
        now = time.monotonic()
        began, said, more = self._spans.get(kind, (now, 0, 0))
        if now - began >= _SPAN_SEC:
            self._sum(kind)
            began, said, more = now, 0, 0
        if said < _SHOWN:
            self._spans[kind] = began, said + 1, more
            say(one_line(sentence))
        else:
            self._spans[kind] = began, said, more + count

    def close(self) -> None:
        for kind in list(self._spans):
            self._sum(kind)

    def _sum(self, kind: str) -> None:
        _, _, more = self._spans.pop(kind, (0.0, 0, 0))
        if more:
            say(f"… and {more} more of this kind: {kind}")
