"""A stand-in agent that covers its tracks: its daemon has an empty environment.

It ignores HUP and TERM, lives at most five minutes, and prints ``ready PID``.
"""

import os
import signal
import sys
import time

if "PATH" in os.environ:
    print("stand-in agent: this one covers its tracks", flush=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.execve(sys.executable, [sys.executable, "-I", "-S", *sys.argv], {})
    time.sleep(300)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.alarm(300)
print(f"ready {os.getpid()}", flush=True)
while True:
    time.sleep(1)
