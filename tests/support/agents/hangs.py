"""A stand-in agent that hangs: no output, no CPU, until it is ended (or five minutes are over)."""

import time

print("stand-in agent: this one hangs", flush=True)
time.sleep(300)
