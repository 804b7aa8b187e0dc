"""A stand-in agent that prints: ``prints_much.py BYTES``, 100 MB unless told otherwise.

With ``prints_much.py BYTES FILE`` it then goes on with single lines until that file is there.
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
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    os.write(1, line)
    time.sleep(0.01)
