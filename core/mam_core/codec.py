"""Bytes to record and back, strictly.

What is written is plain JSON with a key a line, so that a person can read it
and any tool can parse it. What is read must be one UTF-8 JSON object without
NaN, without a key twice and at most `MAX_DEPTH` levels deep; everything else is one
unreadable row.
"""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Any, NoReturn

from mam_core.errors import UnreadableRecord
from mam_core.records import Job

#: Room for the longest prompt with every byte escaped, and a bound on what a stray file can cost.
MAX_RECORD_BYTES = 16 * 1024 * 1024

#: Lists and objects in each other. A Python bears a thousand of them (3.11), ten thousand (3.13) or
#: what the stack holds (3.14), and what one host of a registry accepts every other has to read.
MAX_DEPTH = 500


def dumps(data: dict[str, Any]) -> bytes:
    """One key a line, by the C encoder's own separators (``indent`` would be ten times slower)."""
    return _encode(data, _PAGE, _PAGE_ESCAPED)


def dumps_line(data: dict[str, Any]) -> bytes:
    """One line, for a log."""
    return _encode(data, _LINE, _LINE_ESCAPED)


def _encode(data: dict[str, Any], plain: json.JSONEncoder, escaped: json.JSONEncoder) -> bytes:
    try:
        return (plain.encode(data) + "\n").encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form; JSON's own escape keeps it.
        return (escaped.encode(data) + "\n").encode()


def loads(data: bytes) -> dict[str, Any]:
    """The object in `data`, or `UnreadableRecord` that says what it is instead."""
    if not data:
        raise UnreadableRecord("it is empty")
    if is_too_deep(data):
        raise UnreadableRecord("it is nested too deeply")
    try:
        parsed = _DECODER.decode(data.decode())
    except UnicodeDecodeError:
        raise UnreadableRecord("it is not UTF-8") from None
    except RecursionError:  # we were called from deep down the stack
        raise UnreadableRecord("it is nested too deeply") from None
    except ValueError as problem:
        raise UnreadableRecord(f"it is not JSON: {problem}") from None
    if not isinstance(parsed, dict):
        raise UnreadableRecord("it is not a JSON object")
    return parsed


def decode_job(data: bytes, job_id: str) -> Job:
    """The record in `data`, which must be about `job_id`."""
    job = Job.from_dict(loads(data))
    if job.job_id != job_id:
        raise UnreadableRecord(f"it says that it is job {job.job_id}")
    return job


def encode_job(job: Job) -> bytes:
    return dumps(job.to_dict())


def is_too_deep(data: bytes) -> bool:
    """More than `MAX_DEPTH` lists and objects in each other; `data` need not be JSON."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:  # nearly always, and at no cost
        return False
    brackets = _STRING.sub(b"", data).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too big")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in result if names.count(name) > 1)
        raise ValueError(f"the key {twice[:40]!r} stands twice")
    return result


# Made once: `json.dumps` with arguments builds an encoder for every call.
_PAGE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",\n ", ": "))
_PAGE_ESCAPED = json.JSONEncoder(allow_nan=False, separators=(",\n ", ": "))
_LINE = json.JSONEncoder(ensure_ascii=False)
_LINE_ESCAPED = json.JSONEncoder()
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(_STEPS))
#: Possessive, so it never goes back; the last quote may be missing.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_DECODER = json.JSONDecoder(
    parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_unique
)
