"""The other side of the feed's figures: a process that numbers events and sends them.

It says "ready", takes one line of orders, sends, and is ready again.
"""

from __future__ import annotations

import json
import sys
import time

from mam_core.config import load
from mam_core.wiring import client_for, open_registry


def main(path: str) -> None:
    client = client_for(path, load())
    client.reach()
    with open_registry(path) as registry:
        print("ready", flush=True)
        for line in sys.stdin:
            orders = json.loads(line)
            for number in range(orders["messages"]):
                job_id = orders["jobs"][number % len(orders["jobs"])]
                seq = registry.next_seq(job_id)
                content = {"schema_version": 1, "seq": seq, "job_id": job_id, "attempt": 1}
                content |= {"event": "progress", "timestamp": "", "detail": "half way"}
                content["data"] = {"sent": time.monotonic()}
                topic = f"python/mqtt/jobs/{job_id}/events"
                client.publish(topic, json.dumps(content).encode(), qos=1)
                time.sleep(orders["every"])
            print("ready", flush=True)
    client.stop()


if __name__ == "__main__":
    main(sys.argv[1])
