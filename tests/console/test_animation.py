"""The recording in ``screenshots/``: whole, small, and made as its format says."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

from tests.console.animation import animated
from tests.console.pictures import FOLDER
from tests.console.recording import STEPS

MOST_BYTES = 2 * 1024 * 1024


def chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (mark,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert mark == zlib.crc32(kind + body)
        found.append((kind, body))
        at += length + 12
    return found


def picture(path: Path, lines: list[bytes]) -> Path:
    """A PNG as chromium writes them, with every filter there is in turn."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        mark = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + mark

    head = struct.pack(">IIBBBBB", len(lines[0]) // 3, len(lines), 8, 2, 0, 0, 0)
    raw, above = b"", bytes(len(lines[0]))
    for row, line in enumerate(lines):
        kind = row % 5
        raw += bytes([kind])
        for at, value in enumerate(line):
            left, up = (line[at - 3] if at >= 3 else 0), above[at]
            corner = above[at - 3] if at >= 3 else 0
            nearest = min((left, up, corner), key=lambda one: abs(left + up - corner - one))
            guess = (0, left, up, (left + up) // 2, nearest)[kind]
            raw += bytes([(value - guess) % 256])
        above = line
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


def test_pictures_become_one_that_moves(tmp_path: Path) -> None:
    first = [bytes((7 * row + 3 * at) % 256 for at in range(12)) for row in range(6)]
    second = [*first[:2], bytes(12), bytes(range(12)), *first[4:]]
    frames = [
        (picture(tmp_path / f"{number}.png", lines), 1.5)
        for number, lines in enumerate((first, second))
    ]
    made = animated(frames)
    kinds = [kind for kind, _ in chunks(made)]
    assert kinds == [b"IHDR", b"PLTE", b"acTL", b"fcTL", b"IDAT", b"fcTL", b"fdAT", b"IEND"]
    parts = dict(chunks(made))
    colours = parts[b"PLTE"]
    indexes = zlib.decompress(parts[b"IDAT"])
    seen = [
        b"".join(colours[3 * one : 3 * one + 3] for one in indexes[at + 1 : at + 5])
        for at in range(0, len(indexes), 5)
    ]
    assert seen == first
    # Of the second only the lines that changed: two, from the third on.
    number, wide, high, left, top = struct.unpack(">IIIII", parts[b"fcTL"][:20])
    assert (number, wide, high, left, top) == (1, 4, 2, 0, 2)


def test_the_recording_is_one_and_not_large() -> None:
    cast = FOLDER / "demo.cast"
    head, *events = map(json.loads, cast.read_text(encoding="utf-8").splitlines())
    assert head["version"] == 2
    assert {kind for _, kind, _ in events} == {"o", "m"}
    assert [text for _, kind, text in events if kind == "m"] == [step.name for step in STEPS]
    moments = [moment for moment, _, _ in events]
    assert moments == sorted(moments)
    moving = FOLDER / "demo.png"
    assert b"acTL" in moving.read_bytes()
    assert max(cast.stat().st_size, moving.stat().st_size) < MOST_BYTES
