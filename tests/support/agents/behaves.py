"""A stand-in agent that behaves: reads its prompt, says so, leaves what it is asked to leave.

``behaves.py [ARTIFACT]``
"""

import hashlib
import os
import sys

print("stand-in agent: this one behaves", flush=True)
prompt = sys.stdin.buffer.read()
print(f"prompt of {len(prompt)} bytes, sha256 {hashlib.sha256(prompt).hexdigest()}")
print(f"job {os.environ.get('MAM_JOB_ID', '')} in {os.getcwd()}")
if len(sys.argv) > 1:
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("made by a stand-in agent\n")
