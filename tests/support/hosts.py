"""Two hosts on one machine: network namespaces with a cable between them that can be cut.

Each has a name and an address of its own, and sees no network but the other one.
What runs on a host is a real process; the disk, the clock and the pids are shared,
so a test keeps the hosts' folders apart itself.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pytest

#: Names the host, then becomes the command: a host name belongs to its own UTS namespace.
_AS = 'hostname "$0" && exec "$@"'


class Host(NamedTuple):
    """One end of the cable."""

    name: str
    address: str
    space: str
    end: str

    def command(self, *words: str) -> list[str]:
        """The same command, run on this host."""
        there = ["ip", "netns", "exec", self.space, "unshare", "--uts", "sh", "-c", _AS]
        return [*there, self.name, *words]

    def cut(self) -> None:
        """Pull the cable out: nothing is refused, nothing arrives."""
        _ip("-n", self.space, "link", "set", self.end, "down")

    def heal(self) -> None:
        _ip("-n", self.space, "link", "set", self.end, "up")


@contextmanager
def two_hosts(names: Sequence[str] = ("oak", "elm")) -> Iterator[tuple[Host, Host]]:
    """The test is skipped, and says so, where this machine does not permit it."""
    _need_permission()
    mark = secrets.token_hex(3)
    net = f"10.213.{secrets.randbelow(250)}"
    hosts = [
        Host(name, f"{net}.{number}", f"mam-{mark}-{number}", f"m{mark}{number}")
        for number, name in enumerate(names, 1)
    ]
    try:
        for host in hosts:
            _ip("netns", "add", host.space)
            _ip("-n", host.space, "link", "set", "lo", "up")
        one, two = hosts
        peer = ("peer", "name", two.end, "netns", two.space)
        _ip("link", "add", one.end, "netns", one.space, "type", "veth", *peer)
        for host in hosts:
            _ip("-n", host.space, "addr", "add", f"{host.address}/24", "dev", host.end)
            host.heal()
        yield one, two
    finally:
        for host in hosts:
            subprocess.run(
                ["ip", "netns", "delete", host.space], capture_output=True, check=False, timeout=30
            )


def _need_permission() -> None:
    if os.geteuid() != 0:
        pytest.skip("two hosts need root, to make network namespaces")
    if shutil.which("ip") is None:
        pytest.skip("two hosts need the command ip (Debian: iproute2)")
    probe = f"mam-probe-{secrets.token_hex(3)}"
    try:
        _ip("netns", "add", probe)
        _ip("-n", probe, "link", "set", "lo", "up")
    except subprocess.CalledProcessError as problem:  # as in a container
        pytest.skip(f"network namespaces are not permitted here: {problem.stderr.strip()}")
    finally:
        subprocess.run(["ip", "netns", "delete", probe], capture_output=True, timeout=30)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True, timeout=30)
