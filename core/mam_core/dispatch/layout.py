"""The text of a dispatch registry: a line for each task, so that one is found and changed alone.

Any tool may write the file as it likes; we lay it out like this at our next write.
As long as nobody else wrote since, a claim reads one line of ten thousand and
replaces it, instead of parsing and printing them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from mam_core.dispatch.tasks import VERSION, DispatchError, Task

_INDENT = b"\n    "
_TASKS = b'  "tasks": {'
_NO_TASKS = _TASKS + b"}\n}\n"
_END = b"\n  }\n}\n"
_UPDATED_AT = re.compile(rb'(\n  "updated_at": ")[^"\\]*(")')
_DATE = re.compile(r"[0-9A-Za-z:.+ -]*")


class Whole(NamedTuple):
    """A dispatch registry, read in full."""

    header: Mapping[str, Any]  #: all but the tasks
    tasks: Mapping[str, Task]


def parse(data: bytes) -> Whole:
    """Raises `DispatchError` with the reason."""
    try:
        content = json.loads(data, parse_constant=_no_number)
    except RecursionError:
        raise DispatchError("it is nested too deeply") from None
    except ValueError as problem:
        raise DispatchError(f"it is not JSON: {problem}") from None
    if not isinstance(content, dict) or not isinstance(content.get("tasks"), dict):
        raise DispatchError("it is no dispatch registry: it has no tasks")
    version = content.get("version")
    if version != VERSION or isinstance(version, bool):
        raise DispatchError(f"its version is {version!r:.40}; this version of mam knows {VERSION}")
    tasks = content.pop("tasks")
    return Whole(content, {name: Task.from_dict(name, task) for name, task in tasks.items()})


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def compose(whole: Whole) -> bytes:
    """The text that we write."""
    header = {"version": VERSION, "updated_at": "", **whole.header}
    if not _DATE.fullmatch(str(header["updated_at"])):
        header["updated_at"] = ""
    head = b"".join(b"  %b: %b,\n" % (_json(key), _json(header[key])) for key in header)
    block = b"".join(block_line(name, task) for name, task in whole.tasks.items())
    return assemble(b"{\n" + head, block)


def assemble(head: bytes, block: bytes) -> bytes:
    """`block` is a line for each task, as `block_line` makes them."""
    if not block:
        return head + _NO_TASKS
    return b"".join((head, _TASKS, memoryview(block)[:-1], _END))


def block_line(name: str, task: Task) -> bytes:
    return b"".join((_INDENT, _task_line(name, task), b","))


def read_line(line: bytes) -> tuple[str, Task]:
    """Of a line that `block_line` made, with or without what is around it."""
    ((name, data),) = json.loads(b"{" + line.rstrip(b",") + b"}").items()
    return name, Task.from_dict(name, data)


class Sheet:
    """A text in our layout, and the lines of it that were changed since.

    The text is never copied for a change: of ten thousand tasks that would be most of a claim.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._body = text.index(b"\n" + _TASKS) + 1
        self._head = text[: self._body]
        self._places: dict[str, tuple[int, int]] = {}
        self._changed: dict[tuple[int, int], bytes] = {}  #: new lines by the places of the old

    @property
    def text(self) -> bytes:
        if (
            not self._changed
            and len(self._head) == self._body
            and self._text.startswith(self._head)
        ):
            return self._text
        return b"".join(self.parts())

    @property
    def head(self) -> bytes:
        """All before the tasks."""
        return self._head

    @property
    def block(self) -> bytes:
        """The tasks, a line each."""
        text = self.text
        if text.endswith(_NO_TASKS):
            return b""
        start = len(self._head) + len(_TASKS)
        return b"".join((memoryview(text)[start : -len(_END)], b","))

    def parts(self) -> Iterator[bytes | memoryview]:
        """The text in pieces, one after the other."""
        yield self._head
        view, at = memoryview(self._text), self._body
        for start, end in sorted(self._changed):
            yield view[at:start]
            yield self._changed[start, end]
            at = end
        yield view[at:]

    def get(self, name: str) -> Task | None:
        place = self._find(name)
        if place is None:
            return None
        return read_line(self._changed.get(place) or self._text[place[0] : place[1]])[1]

    def put(self, name: str, task: Task) -> None:
        """In place of the task of that name, which is there."""
        place = self._find(name)
        assert place is not None
        self._changed[place] = _task_line(name, task)

    def date(self, stamp: str) -> None:
        """When it was written."""
        new = rb"\g<1>" + stamp.encode("ascii") + rb"\g<2>"
        self._head = _UPDATED_AT.sub(new, self._head, count=1)

    def _find(self, name: str) -> tuple[int, int] | None:
        if name in self._places:
            return self._places[name]
        # A text in JSON never holds a line end, so what follows one is a name of ours.
        start = self._text.find(_INDENT + _json(name) + b": {", self._body)
        if start < 0:
            return None
        start += len(_INDENT)
        end = self._text.index(b"\n", start)
        self._places[name] = place = start, end - (self._text[end - 1] == ord(","))
        return place


def _task_line(name: str, task: Task) -> bytes:
    return _json(name) + b": " + _json(task.to_dict())


def _json(value: Any) -> bytes:
    """As people read it; what has no UTF-8 form, as an escape."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()
