"""A stand-in agent that does not want to end: five processes, each out of reach in its own way.

The main process and one child ignore HUP and TERM, one child is plain, one has
a session of its own, one is a daemon by double fork. It prints ``ready PIDS`` when
all five are there. Whatever happens, none of them lives longer than five minutes.
"""

import os
import signal
import time

LIFE_SEC = 300


def settle(*, stubborn: bool) -> None:
    signal.alarm(LIFE_SEC)
    if stubborn:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(ready, f"{os.getpid()} ".encode())


def live() -> None:
    while True:
        time.sleep(1)


def child(*, stubborn: bool = False, own_session: bool = False, daemon: bool = False) -> None:
    if os.fork():
        return
    if own_session or daemon:
        os.setsid()
    if daemon and os.fork():
        os._exit(0)
    settle(stubborn=stubborn)
    live()


print("stand-in agent: this one does not want to end", flush=True)
heard, ready = os.pipe()
child()
child(stubborn=True)
child(own_session=True)
child(own_session=True, daemon=True, stubborn=True)
settle(stubborn=True)
told = b""
while told.count(b" ") < 5:
    told += os.read(heard, 1000)
print(f"ready {told.decode().strip()}", flush=True)
live()
