"""A stand-in agent that writes down when it was alive, by the clock that all hosts of a test share.

``ticks.py FOLDER``: its first attempt ignores all that can be ignored and never ends; a later
one ends well after a few ticks. A tick is a line of nanoseconds in ``FOLDER/<job>.<attempt>``.
Nobody lives longer than five minutes.
"""

import os
import signal
import sys
import time

LIFE_SEC = 300
TICK_SEC = 0.02
TICKS_OF_LATER_ATTEMPTS = 10

signal.alarm(LIFE_SEC)
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
name = f"{os.environ['MAM_JOB_ID']}.{os.environ['MAM_ATTEMPT']}"
ticks = os.open(os.path.join(sys.argv[1], name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
left = TICKS_OF_LATER_ATTEMPTS
while os.environ["MAM_ATTEMPT"] == "1" or left > 0:
    os.write(ticks, b"%d\n" % time.monotonic_ns())
    time.sleep(TICK_SEC)
    left -= 1
