"""A stand-in agent that plays a recording: ``replays.py FILE [SECONDS]``, then waits so long."""

import sys
import time

print("stand-in agent: this one plays a recording", file=sys.stderr, flush=True)
with open(sys.argv[1], "rb") as file:
    sys.stdout.buffer.write(file.read())
sys.stdout.flush()
time.sleep(float(sys.argv[2]) if sys.argv[2:3] and sys.argv[2][0].isdigit() else 0)
