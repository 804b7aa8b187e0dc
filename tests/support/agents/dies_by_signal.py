"""A stand-in agent that dies by a signal: ``dies_by_signal.py [NAME]``, else by SEGV."""

import os
import signal
import sys

print("stand-in agent: this one dies", flush=True)
name = sys.argv[1] if len(sys.argv) > 1 else "SEGV"
os.kill(os.getpid(), signal.Signals[f"SIG{name}"])
