"""A stand-in agent that prints: ``prints_much.py BYTES``, 100 MB unless told otherwise.

With ``prints_much.py BYTES until FILE`` it then goes on with single lines until that file is there.
"""

import os
import sys
import time

print("stand-in agent: this one prints much", flush=True)
left = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
line = b"x" * 99 + b"\n"
block = line * 1000
while left > 0:
    left -= sys.stdout.buffer.write(block[:left])
until = sys.argv[3] if sys.argv[2:3] == ["until"] else ""
while until and not os.path.exists(until):
    os.write(1, line)
    time.sleep(0.01)
