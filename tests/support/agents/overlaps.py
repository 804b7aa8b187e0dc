"""A stand-in agent that notices a second one: ``overlaps.py FOLDER SECONDS WORD``.

Its tree of four holds a lock on a file of its job for as long as any of them
lives; whoever finds it held says so in ``FOLDER/doubles``. None of them lives
longer than five minutes.
"""

import fcntl
import os
import random
import signal
import sys
import time

print("stand-in agent: this one notices a second one", flush=True)
signal.alarm(300)
name = f"{os.environ['MAM_JOB_ID']} attempt {os.environ['MAM_ATTEMPT']}"
lock = os.open(os.path.join(sys.argv[1], os.environ["MAM_JOB_ID"]), os.O_RDWR | os.O_CREAT)
os.set_inheritable(lock, True)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    with open(os.path.join(sys.argv[1], "doubles"), "a", encoding="utf-8") as file:
        file.write(f"{name} while {os.pread(lock, 100, 0)!r} is held\n")
    sys.exit(1)
os.pwrite(lock, name.encode().ljust(60), 0)
for daemon in (False, False, True):
    if os.fork() == 0:
        signal.alarm(300)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if daemon:
            os.setsid()
            if os.fork():
                os._exit(0)
        while True:
            time.sleep(1)
time.sleep(float(sys.argv[2]) * random.random())
