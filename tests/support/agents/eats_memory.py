"""A stand-in agent that eats memory, in parts: ``eats_memory.py MEGABYTES [PROCESSES] [shared]``.

Each process takes its part in steps and holds it, at most for a minute. With
``shared`` all of them hold one and the same memory.
"""

import mmap
import os
import sys
import time

STEP = 8 << 20


def eat(memory: "mmap.mmap", size: int) -> None:
    for at in range(0, size, mmap.PAGESIZE):
        memory[at] = 1
        if at % STEP == 0:
            time.sleep(0.01)


print("stand-in agent: this one eats memory", flush=True)
words = [*sys.argv[1:], "64", "1"]
size, processes = int(words[0]) << 20, int(words[1])
common = mmap.mmap(-1, size)
for _ in range(processes - 1):
    if os.fork() == 0:
        break
if "shared" in sys.argv:
    eat(common, size)
else:
    private = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    eat(private, size)
print("eaten", flush=True)
time.sleep(60)
