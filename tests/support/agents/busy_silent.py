"""A stand-in agent that says nothing and works hard: ``busy_silent.py SECONDS``."""

import sys
import time

print("stand-in agent: this one works in silence", flush=True)
end = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else "60")
while time.monotonic() < end:
    sum(range(10_000))
