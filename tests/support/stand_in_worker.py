"""A stand-in for the worker: runs one stand-in agent and writes its attempt's mark, and no more.

``stand_in_worker.py FOLDER ISOLATION AGENT``, with the word that marks the
agent's processes in the environment, as ``STAND_IN_WORD``. The agent's output goes to
``FOLDER/output``, the mark to ``FOLDER/process.json``, reports to our stdout.
It stops the attempt when it reads a line, and ends when the attempt has ended.
"""

from __future__ import annotations

import os
import select
import sys

from mam_core.disk import Folder
from mam_core.work.marks import AttemptMark
from mam_core.work.orders import Isolation, Orders, new_token
from mam_core.work.reports import Ended
from mam_core.work.supervised import Supervised


def main(path: str, isolation: str, agent: str) -> None:
    output = os.open(f"{path}/output", os.O_WRONLY | os.O_CREAT, 0o600)
    orders = Orders(
        argv=(sys.executable, "-I", "-S", agent, os.environ["STAND_IN_WORD"]),
        cwd="/",
        environ={"PATH": os.environ.get("PATH", os.defpath)},
        token=new_token(),
        grace_sec=0.3,
        sample_sec=0.2,
        isolation=Isolation(isolation),
    )
    with Folder.open(path) as folder:
        supervised = Supervised.start(
            orders,
            stdout=output,
            stderr=output,
            remember=lambda mark: AttemptMark.of(orders.token, mark).write(folder),
        )
    os.close(output)
    listening = [supervised.fileno(), sys.stdin.fileno()]
    while True:
        ready, _, _ = select.select(listening, [], [])
        if sys.stdin.fileno() in ready:
            listening.pop()
            supervised.stop()
        for report in supervised.read():
            print(report, flush=True)
            if isinstance(report, Ended):
                supervised.close()
                return


if __name__ == "__main__":
    main(*sys.argv[1:4])
