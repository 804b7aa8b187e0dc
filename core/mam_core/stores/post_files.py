"""A post as a file: its first line says where it goes, the rest is the payload, byte by byte."""

from __future__ import annotations

import json

from mam_core import codec
from mam_core.errors import UnreadableRecord
from mam_core.events.post import Post
from mam_core.record_parts import Broker
from mam_core.records import check_job_id

SUFFIX = ".json"
MIN_DIGITS = 12


def file_name(seq: int, job_id: str) -> str:
    """As text it sorts like the numbers do."""
    return f"{seq:0{MIN_DIGITS}d}-{job_id}{SUFFIX}"


def post_name(post: Post) -> str:
    return file_name(post.seq, post.job_id)


def encode_post(post: Post) -> bytes:
    head = {
        "job_id": post.job_id,
        "attempt": post.attempt,
        "seq": post.seq,
        "topic": post.topic,
        "broker": post.broker.to_dict(),
        "said_at": post.said_at,
    }
    # ASCII, so that a header is one line whatever a topic holds.
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + post.payload


def decode_post(data: bytes, name: str) -> Post:
    """The post in a file of that name; `UnreadableRecord` says what is wrong with it."""
    line, newline, payload = data.partition(b"\n")
    if not newline:
        raise UnreadableRecord("it has no payload")
    head = codec.loads(line)
    try:
        post = Post(
            check_job_id(head["job_id"]),
            _whole(head["attempt"]),
            _whole(head["seq"]),
            _text(head["topic"]),
            Broker.from_dict(head["broker"]),
            payload,
            _text(head.get("said_at", "")),
        )
    except (KeyError, TypeError, AttributeError) as problem:
        raise UnreadableRecord(f"its first line is malformed: {problem}") from None
    if post_name(post) != name:
        raise UnreadableRecord("it is named like another event")
    return post


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r:.40} is no count")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value
