"""A stand-in agent that meets its usage limit: ``hits_quota.py [EPOCH SECONDS OF THE RESET]``."""

import sys

print("stand-in agent: this one meets its limit", flush=True)
reset = sys.argv[1] if len(sys.argv) > 1 else "1893456000"
print(f"Claude AI usage limit reached|{reset}")
sys.exit(1)
