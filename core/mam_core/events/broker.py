"""The embedded broker as a process: one per registry, alive as long as somebody keeps it.

How it is kept. Every long-lived command holds a shared ``flock`` on
``.broker/keep``; the kernel takes it away from a command that is killed, so no
count can be wrong. The broker's parent is a tiny process of its own (`watcher`),
which sleeps until it is granted that lock exclusively, that is: until nobody is
left, and then ends the broker. The other way, to let the next command clean up,
would leave a server behind for days after a kill -9.

How there is only one. Who starts it holds ``.broker/lock`` exclusively and
hands the open file on to watcher and broker, so the lock is free exactly when
neither is left. Five commands that start at once have one winner; the others
wait for its CONNACK.

How it comes back is the business of each `keeper`.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence

from mam_core.clock import SystemClock
from mam_core.disk import explain
from mam_core.events.embedded import BrokerFolder, BrokerStatus, Role, is_free
from mam_core.events.keeper import Keeper
from mam_core.events.running import read_running
from mam_core.events.servers import SERVERS, Server, choose
from mam_core.events.watcher import Orders

#: From the call to the first CONNACK; measured 60 ms, and a busy machine may take its time.
START_SEC = 15.0
#: After the last keeper's end, and until a broker that does not listen is killed.
LINGER_SEC = 1.0
GRACE_SEC = 5.0

#: What the broker gets of our environment. A job's or a login's variables are not its business,
#: and a search for an agent's processes by such a variable must not find it.
_ENVIRONMENT = ("HOME", "PATH", "TMPDIR", "LANG")

_WATCH = (
    "import sys; sys.path.insert(0, sys.argv[1]); from mam_core.events.watcher import main; main()"
)

_log = logging.getLogger("mam")


class EmbeddedBroker:
    """The broker of one registry."""

    def __init__(
        self,
        registry_path: str,
        *,
        servers: Sequence[Server] = SERVERS,
        linger_sec: float = LINGER_SEC,
        grace_sec: float = GRACE_SEC,
    ) -> None:
        self.registry_path = registry_path
        self._servers = servers
        self._linger_sec = linger_sec
        self._grace_sec = grace_sec

    def ensure_running(self, timeout: float = START_SEC, *, or_later: bool = False) -> Keeper:
        """Start it unless it runs, and keep it until the answer is closed.

        Raises `NoBroker` where the machine has no program for it, and
        `BrokerFailed` when it does not answer in time. With `or_later` both
        stand in the answer's `trouble` instead, and it is tried again meanwhile.
        """
        home = BrokerFolder.make(self.registry_path)
        keeper = Keeper(self._launch, home, timeout)
        try:
            keeper.begin(or_later=or_later)
        except BaseException:
            keeper.close()
            raise
        return keeper

    def status(self) -> BrokerStatus:
        """How it stands; looks only, and makes nothing."""
        try:
            home = BrokerFolder.open(self.registry_path)
        except FileNotFoundError:
            return BrokerStatus(running=False)
        with home:
            running = read_running(home)
            if running is None or not running.server_may_live:
                port = home.address().port if home.has_address else None
                return BrokerStatus(running=False, port=port)
            return BrokerStatus(
                running=True,
                port=running.port,
                kind=running.kind,
                version=running.version,
                pid=running.server.pid,
                uptime_sec=max(0.0, SystemClock().since_boot() - running.since_boot),
            )

    def _launch(self, home: BrokerFolder, lock: int) -> None:
        """Start watcher and broker; they hold `lock` from then on, and the caller lets go of it."""
        server, program = choose(self._servers)
        where = home.address()
        if not is_free(where.port):
            taken, where = where, home.move()
            _log.warning(
                "another program uses the embedded broker's port %d: it is %d from now on",
                taken.port,
                where.port,
            )
        logins = {role: home.login(role) for role in Role}
        try:
            command = server.prepare(home.folder, program, where.port, logins)
        except OSError as problem:
            raise explain(problem, f"cannot write to {home.folder.path}") from problem
        orders = Orders(
            command=tuple(command),
            kind=server.name,
            version=program.version,
            port=where.port,
            lock_fd=lock,
            linger_sec=self._linger_sec,
            grace_sec=self._grace_sec,
        )
        source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        # It forks and leaves at once: what this waits for is Python's start.
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _WATCH, source, orders.to_json()],
            cwd=home.folder.path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock,),
            check=False,
        )
