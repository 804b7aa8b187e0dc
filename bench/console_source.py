"""Where the console's news come from: a process of its own, so that only the console is measured.

It says "ready", takes one line of orders, does them, and is ready again. Events take their numbers
from the record, ten at a time, and are sent to the broker as they are: to publish each by the
registry costs more time than a thousand a second have.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from bench.feed import replace
from mam_core.config import load
from mam_core.wiring import client_for, open_registry

_AHEAD = 10


def main(path: str) -> None:
    client = client_for(path, load())
    client.reach()
    seqs: dict[str, int] = {}
    issued: dict[str, int] = {}
    with open_registry(path) as registry:
        print("ready", flush=True)
        for line in sys.stdin:
            orders = json.loads(line)
            jobs: list[str] = orders["jobs"]
            for number in _paced(orders["number"], orders["rate"]):
                job_id = jobs[number % len(jobs)]
                if orders["kind"] == "records":
                    job = registry.get(job_id)
                    replace(path, job.evolve(**orders["changes"]))
                    continue
                if seqs.get(job_id) == issued.get(job_id):
                    job = registry.get(job_id)
                    seqs[job_id], issued[job_id] = job.last_seq, job.last_seq + _AHEAD
                    replace(path, job.evolve(last_seq=issued[job_id]))
                seqs[job_id] += 1
                client.publish(
                    f"python/mqtt/jobs/{job_id}/events", _event(job_id, seqs[job_id], number), qos=0
                )
            print("ready", flush=True)
    client.stop()


def _event(job_id: str, seq: int, number: int) -> bytes:
    content: dict[str, Any] = {"schema_version": 1, "seq": seq, "job_id": job_id, "attempt": 1}
    content |= {"event": "progress", "timestamp": "", "detail": f"step {number}"}
    content["data"] = {"tokens": {"input": number, "output": 7}}
    return json.dumps(content).encode()


def _paced(number: int, rate: float) -> Iterator[int]:
    """So many a second, ten milliseconds' worth at a time."""
    began = time.monotonic()
    for at in range(number):
        ahead = at / rate - (time.monotonic() - began) if rate else 0.0
        if ahead > 0.01:
            time.sleep(ahead)
        yield at


if __name__ == "__main__":
    main(sys.argv[1])
