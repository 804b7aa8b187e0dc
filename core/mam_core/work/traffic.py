"""The bytes that a process tree has sent and received over TCP, asked of the kernel.

The kernel counts bytes per socket, not per process, and tells anyone who asks
(sock_diag, the way of `ss -i`). Which sockets are a tree's stands among its open
files. UDP (also HTTP/3) has no such count, and sockets in a network namespace of
their own are not seen: then CPU and output are the only signs of life.
"""

from __future__ import annotations

import _socket
import os
import struct

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_DIAG_BY_FAMILY = 20
_DUMP = 0x301  # a request for all of them
_DONE, _ERROR = 3, 2
_INFO = 2  # INET_DIAG_INFO
_TCP = 6
_OPEN_STATES = 0xFFF & ~(1 << 10)  # not those that only listen
_REQUEST = struct.Struct("=IHHII BBBBI 48x")
_HEADER = struct.Struct("=IHHII")
_INODE_AT = 68
_MESSAGE_BYTES = 72
_ATTRIBUTE = struct.Struct("=HH")
_COUNTS = struct.Struct("=QQ")
_COUNTS_AT = 120  # tcpi_bytes_acked, tcpi_bytes_received


class Traffic:
    """The running count of one tree; None where the kernel does not tell."""

    def __init__(self) -> None:
        self._total = 0
        self._counts: dict[int, int] = {}

    def sample(self, pids: list[int]) -> int | None:
        mine: set[int] = set()
        for pid in pids:
            mine |= sockets(pid)
        if not mine:
            self._counts = {}
            return self._total
        try:
            all_counts = {**_ask(_socket.AF_INET), **_ask(_socket.AF_INET6)}
        except (OSError, struct.error):
            return None
        now = {inode: count for inode, count in all_counts.items() if inode in mine}
        for inode, count in now.items():
            self._total += max(0, count - self._counts.get(inode, 0))
        self._counts = now
        return self._total


def sockets(pid: int) -> set[int]:
    """The inodes of its open sockets; empty for a process that is not ours to look into."""
    found = set()
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            try:
                target = os.readlink(f"{folder}/{name}")
            except OSError:
                continue
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    except OSError:
        pass
    return found


def _ask(family: int) -> dict[int, int]:
    """Bytes per socket inode, of every TCP connection here."""
    counts: dict[int, int] = {}
    line = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, _SOCK_DIAG)
    try:
        line.settimeout(1.0)
        line.send(
            _REQUEST.pack(
                _REQUEST.size, _DIAG_BY_FAMILY, _DUMP, 1, 0,
                family, _TCP, 1 << (_INFO - 1), 0, _OPEN_STATES,
            )
        )  # fmt: skip
        while True:
            data = line.recv(1 << 16)
            at = 0
            while at + _HEADER.size <= len(data):
                length, kind, *_ = _HEADER.unpack_from(data, at)
                if kind == _DONE:
                    return counts
                if kind == _ERROR or length < _HEADER.size:
                    raise OSError("sock_diag says no")
                _read_one(data[at + _HEADER.size : at + length], counts)
                at += (length + 3) & ~3
    finally:
        line.close()


def _read_one(message: bytes, counts: dict[int, int]) -> None:
    (inode,) = struct.unpack_from("=I", message, _INODE_AT)
    at = _MESSAGE_BYTES
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if length < _ATTRIBUTE.size:
            return
        if kind == _INFO and length >= _ATTRIBUTE.size + _COUNTS_AT + _COUNTS.size:
            counts[inode] = sum(_COUNTS.unpack_from(message, at + _ATTRIBUTE.size + _COUNTS_AT))
        at += (length + 3) & ~3
