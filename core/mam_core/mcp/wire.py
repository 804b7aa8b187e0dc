"""JSON-RPC 2.0 as lines: messages in, answers out, whatever somebody sends.

A line that is too long, no JSON, no message or no UTF-8 costs one error and not the
connection. Lines are written whole, by whichever thread.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, BinaryIO, NamedTuple, NoReturn

#: A prompt of the largest size, each of its bytes escaped.
MOST_BYTES = 8 * 1024 * 1024

Id = str | int


class Code(IntEnum):
    """Errors of the protocol."""

    PARSE = -32700
    INVALID = -32600
    NO_METHOD = -32601
    BAD_PARAMS = -32602
    INTERNAL = -32603
    BUSY = -32000
    BAD_VERSION = -32022


class RpcError(Exception):
    """An answer that says why there is none."""

    def __init__(self, code: Code, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def to_dict(self) -> dict[str, Any]:
        known: dict[str, Any] = {"code": int(self.code), "message": self.message}
        return known | ({"data": dict(self.data)} if self.data is not None else {})


class Message(NamedTuple):
    """A request, or a notification, which has no id and gets no answer."""

    method: str
    params: Mapping[str, Any]
    id: Id | None = None


class Broken(NamedTuple):
    """What was no message."""

    error: RpcError
    id: Id | None = None


def messages(file: BinaryIO) -> Iterator[Message | Broken]:
    """Until the other side closes. Answers to questions that we never ask are passed over."""
    while line := file.readline(MOST_BYTES + 1):
        if len(line) > MOST_BYTES and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = file.readline(MOST_BYTES)
            yield Broken(RpcError(Code.INVALID, f"a message has at most {MOST_BYTES:,} bytes"))
        elif line.strip():
            yield from _read(line)


def _read(line: bytes) -> Iterator[Message | Broken]:
    try:
        found = json.loads(line.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        yield Broken(RpcError(Code.PARSE, "that is no JSON"))
        return
    # A list of messages is of the protocol of 2025-03-26; its answers may come one by one.
    several = found if isinstance(found, list) and found else [found]
    for one in several:
        if (message := _message(one)) is not None:
            yield message


def _message(found: Any) -> Message | Broken | None:
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        return Broken(RpcError(Code.INVALID, "that is no message of JSON-RPC 2.0"))
    given = found.get("id")
    is_id = isinstance(given, str | int) and not isinstance(given, bool)
    number = given if is_id else None
    method, params = found.get("method"), found.get("params", {})
    if method is None and ("result" in found or "error" in found):
        return None
    if "id" in found and number is None:
        return Broken(RpcError(Code.INVALID, "an id is a string or a whole number"))
    if not isinstance(method, str):
        return Broken(RpcError(Code.INVALID, "a message has a method"), number)
    if params is None:
        params = {}
    if not isinstance(params, dict):
        return Broken(RpcError(Code.BAD_PARAMS, "params must be an object"), number)
    return Message(method, params, number)


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


class Outlet:
    """Where answers go; one that nobody reads any more takes them silently."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.is_closed = False

    def result(self, number: Id, result: Mapping[str, Any]) -> None:
        self._put({"jsonrpc": "2.0", "id": number, "result": dict(result)})

    def error(self, number: Id | None, error: RpcError) -> None:
        self._put({"jsonrpc": "2.0", "id": number, "error": error.to_dict()})

    def _put(self, answer: Mapping[str, Any]) -> None:
        # ASCII: a lone half of a character, which UTF-8 cannot carry, leaves as its escape.
        line = json.dumps(answer, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if self.is_closed:
                return
            try:
                self._file.write(line)
                self._file.flush()
            except (OSError, ValueError):
                self.is_closed = True
