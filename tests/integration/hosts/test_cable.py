"""The ground that stories of two hosts stand on."""

from __future__ import annotations

import subprocess

from tests.support.hosts import Host, two_hosts
from tests.support.patience import eventually

_SERVE = """\
import socket, sys
server = socket.create_server((sys.argv[1], 7))
server.settimeout(60)
while True:
    server.accept()[0].close()"""
_CALL = "import socket,sys; socket.create_connection((sys.argv[1],7),1)"


def reaches(one: Host, other: Host) -> bool:
    called = one.command("python3", "-c", _CALL, other.address)
    return subprocess.run(called, capture_output=True, check=False, timeout=60).returncode == 0


def test_two_hosts_have_names_and_a_cable_that_can_be_cut() -> None:
    with two_hosts() as (oak, elm):
        said = subprocess.run(elm.command("hostname"), capture_output=True, text=True, check=True)
        assert said.stdout.strip() == "elm"
        with subprocess.Popen(oak.command("python3", "-c", _SERVE, oak.address)) as server:
            eventually(lambda: reaches(elm, oak), "the cable")
            oak.cut()
            assert not reaches(elm, oak)
            oak.heal()
            eventually(lambda: reaches(elm, oak), "the cable again")
            server.kill()
