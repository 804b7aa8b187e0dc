"""A stand-in agent that ends with an exit code: ``exits_three.py [CODE]``."""

import sys

print("stand-in agent: this one fails", flush=True)
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
