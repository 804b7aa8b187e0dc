"""A stand-in agent that calls a tool, which says nothing: ``calls_tool.py SECONDS [AFTERWARDS]``.

It prints what claude prints around such a call, and is silent for so long in it, and after it.
"""

import json
import sys
import time

CALL = "toolu_1"
SECONDS = [float(word) for word in sys.argv[1:] if word[:1].isdigit()]


def say(**entry: object) -> None:
    print(json.dumps(entry), flush=True)


def message(role: str, **block: object) -> None:
    say(type=role, message={"content": [block]}, parent_tool_use_id=None)


say(type="system", subtype="init", session_id="00000000-0000-4000-8000-000000000001")
message("assistant", type="tool_use", id=CALL, name="Bash", input={"command": "pytest"})
time.sleep(SECONDS[0])
message("user", type="tool_result", tool_use_id=CALL, content="3 passed")
time.sleep(sum(SECONDS[1:]))
say(type="result", subtype="success", is_error=False, result="All is well.")
