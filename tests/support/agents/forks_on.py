"""A stand-in agent that is never where you look: each process forks the next and ends.

``forks_on.py [GENERATIONS] [PAUSE]``: 500 of 20 ms unless told otherwise. Each has a
session of its own, and none keeps its parent's pid for long.
"""

import os
import signal
import sys
import time

print("stand-in agent: this one moves on", flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
generations = int(sys.argv[1]) if len(sys.argv) > 1 else 500
pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0.02
if os.fork():
    time.sleep(generations * pause)  # the agent itself stays
    os._exit(0)
for _ in range(generations):
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(pause)
