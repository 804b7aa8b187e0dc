"""Pictures of one size as one animated PNG, small enough for a page: 256 colours, what changed.

A few dozen lines of the format itself, so that no program for pictures has to be installed.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

_HEAD = b"\x89PNG\r\n\x1a\n"
Pixels = list[bytes]  #: lines, three bytes a pixel


def animated(frames: Sequence[tuple[Path, float]]) -> bytes:
    """Each frame and for how many seconds it is shown; it begins again after the last."""
    pictures = [_read(path) for path, _ in frames]
    wide, high = len(pictures[0][0]) // 3, len(pictures[0])
    colours = _palette(pictures)
    indexed = [_indexed(picture, colours) for picture in pictures]
    chunks = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", b"".join(colours)),
        _chunk(b"acTL", struct.pack(">II", len(frames), 0)),
    ]
    number, before = 0, None
    for lines, (_, seconds) in zip(indexed, frames, strict=True):
        top, bottom = _changed(before, lines)
        part = b"".join(b"\0" + line for line in lines[top:bottom])
        size = struct.pack(">IIII", wide, bottom - top, 0, top)
        delay = struct.pack(">HHBB", int(seconds * 100), 100, 0, 0)
        chunks.append(_chunk(b"fcTL", struct.pack(">I", number) + size + delay))
        data = zlib.compress(part, 9)
        if before is None:
            chunks.append(_chunk(b"IDAT", data))
            number += 1
        else:
            chunks.append(_chunk(b"fdAT", struct.pack(">I", number + 1) + data))
            number += 2
        before = lines
    return _HEAD + b"".join(chunks) + _chunk(b"IEND", b"")


def _changed(before: Sequence[bytes] | None, now: Sequence[bytes]) -> tuple[int, int]:
    """From which line to which; the rest stays as it was."""
    if before is None:
        return 0, len(now)
    differ = [at for at, (old, new) in enumerate(zip(before, now, strict=True)) if old != new]
    return (differ[0], differ[-1] + 1) if differ else (0, 1)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# -- pixels ----------------------------------------------------------------------------------


def _read(path: Path) -> Pixels:
    """What chromium writes: eight bits, red, green and blue, perhaps with an alpha that is full."""
    data = path.read_bytes()
    wide, high, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (depth, kind) in ((8, 2), (8, 6)), "not as chromium writes them"
    size = 3 if kind == 2 else 4
    raw = zlib.decompress(b"".join(_data_of(data)))
    stride = wide * size
    lines: Pixels = []
    above = bytearray(stride)
    for row in range(high):
        at = row * (stride + 1)
        above = _unfiltered(raw[at], bytearray(raw[at + 1 : at + 1 + stride]), above, size)
        lines.append(bytes(above) if size == 3 else _without_alpha(above))
    return lines


def _data_of(data: bytes) -> Iterator[bytes]:
    at = len(_HEAD)
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            yield data[at + 8 : at + 8 + length]
        at += length + 12


def _without_alpha(line: bytearray) -> bytes:
    kept = bytearray(len(line) // 4 * 3)
    for part in range(3):
        kept[part::3] = line[part::4]
    return bytes(kept)


def _unfiltered(kind: int, line: bytearray, above: bytearray, size: int) -> bytearray:
    """Written out, since it is done for every byte of every picture."""
    if kind == 1:
        for at in range(size, len(line)):
            line[at] = (line[at] + line[at - size]) & 255
    elif kind == 2:
        line = bytearray((new + up) & 255 for new, up in zip(line, above, strict=True))
    elif kind == 3:
        for at, up in enumerate(above):
            left = line[at - size] if at >= size else 0
            line[at] = (line[at] + (left + up) // 2) & 255
    elif kind == 4:
        for at, up in enumerate(above):
            left, corner = (line[at - size], above[at - size]) if at >= size else (0, 0)
            to_left, to_up, to_corner = abs(up - corner), abs(left - corner), left + up - 2 * corner
            if to_left <= to_up and to_left <= abs(to_corner):
                guess = left
            else:
                guess = up if to_up <= abs(to_corner) else corner
            line[at] = (line[at] + guess) & 255
    return line


def _palette(pictures: Sequence[Pixels]) -> list[bytes]:
    """The colours that are used most; what is between letter and paper gets the nearest."""
    counted: Counter[bytes] = Counter()
    for picture in pictures:
        for line in picture:
            counted.update(line[at : at + 3] for at in range(0, len(line), 3))
    return [colour for colour, _ in counted.most_common(256)]


def _indexed(lines: Pixels, colours: Sequence[bytes]) -> list[bytes]:
    known = {colour: number for number, colour in enumerate(colours)}
    nearest: dict[bytes, int] = {}  #: of colours that nobody tells apart

    def number_of(colour: bytes) -> int:
        found = known.get(colour)
        if found is None:
            coarse = bytes(part & 0xF8 for part in colour)
            found = nearest.get(coarse)
            if found is None:
                found = min(range(len(colours)), key=lambda one: _distance(colours[one], colour))
                nearest[coarse] = found
            known[colour] = found
        return found

    return [bytes(number_of(line[at : at + 3]) for at in range(0, len(line), 3)) for line in lines]


def _distance(one: bytes, other: bytes) -> int:
    return sum((left - right) ** 2 for left, right in zip(one, other, strict=True))
