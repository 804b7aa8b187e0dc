"""A stand-in agent that speaks JSON both ways: ``two_way.py RECORDING [WORD …]``.

It follows the lines that a real one wrote (permission.control.jsonl), with its own
ids and texts in them. What a turn does stands in the user's words: permission, twice
(two questions at once), question, plan, slow, background, odd (a request that no
client knows), withdraw, fail; anything else is answered at once. What it was told is
kept in ``said.jsonl`` in its folder, line by line; its digest is on standard error.
"""

import hashlib
import json
import os
import select
import sys
import time
import uuid
from typing import Any

print("stand-in agent: this one speaks both ways", file=sys.stderr, flush=True)
with open(sys.argv[1], encoding="utf-8") as recording:
    LINES = [json.loads(line) for line in recording]
said = open("said.jsonl", "ab", buffering=0)  # noqa: SIM115 - as long as it lives
rest = b""
queued: list[dict[str, Any]] = []
denials: list[dict[str, Any]] = []
failed = False


def template(kind: str, subtype: str = "") -> dict[str, Any]:
    found = (x for x in LINES if x["type"] == kind and subtype in ("", x.get("subtype")))
    copied: dict[str, Any] = json.loads(json.dumps(next(found)))
    return copied


def put(entry: dict[str, Any]) -> None:
    print(json.dumps(entry), flush=True)


def text(words: str) -> None:
    entry = template("assistant")
    entry["message"]["content"] = [{"type": "text", "text": words}]
    put(entry)


def heard(timeout: float) -> "dict[str, Any] | None":
    """The next line from standard input; None when there is none yet. Ends with the input."""
    global rest
    if b"\n" not in rest:
        if not select.select([0], [], [], timeout)[0]:
            return None
        data = os.read(0, 65536)
        if not data:
            sys.exit(1 if failed else 0)
        rest += data
        return heard(0) if b"\n" in rest else None
    line, _, rest = rest.partition(b"\n")
    said.write(line + b"\n")
    told: dict[str, Any] = json.loads(line)
    return told


def ask(tool: str, given: dict[str, Any]) -> "tuple[str, str]":
    """Put a question; its id, and that of the tool's use."""
    use, request = f"toolu_{uuid.uuid4().hex[:20]}", str(uuid.uuid4())
    entry = template("assistant")
    entry["message"]["content"] = [{"type": "tool_use", "id": use, "name": tool, "input": given}]
    put(entry)
    entry = template("control_request")
    entry["request_id"] = request
    entry["request"] |= {"tool_name": tool, "input": given, "tool_use_id": use}
    entry["request"].pop("permission_suggestions", None)
    put(entry)
    return request, use


def replies(*requests: str) -> "dict[str, dict[str, Any]]":
    """To all of these; what else comes meanwhile is a later turn's."""
    found: dict[str, dict[str, Any]] = {}
    while set(found) != set(requests):
        entry = heard(60)
        if entry is None:
            continue
        if entry["type"] != "control_response":
            queued.append(entry)
            continue
        assert entry["response"]["subtype"] == "success", entry
        found[entry["response"]["request_id"]] = entry["response"]["response"]
    return found


def used(use: str, words: str, *, error: bool = False) -> None:
    entry = template("user")
    entry["message"]["content"] = [
        {"tool_use_id": use, "type": "tool_result", "content": words, "is_error": error}
    ]
    put(entry)


def permitted(tool: str, given: dict[str, Any], use: str, reply: dict[str, Any]) -> None:
    if reply["behavior"] == "allow":
        assert reply["updatedInput"] == given, reply
        with open(f"granted-{use}", "w", encoding="utf-8"):
            used(use, "42")
    else:
        denials.append({"tool_name": tool, "tool_use_id": use, "tool_input": given})
        used(use, reply["message"], error=True)
        text(f"It was denied: {reply['message']}")


def permission(count: int) -> None:
    given = {"command": "python3 -c 'print(6*7)' && touch granted", "description": "Harmless"}
    open_ones = [ask("Bash", given) for _ in range(count)]
    answers = replies(*(request for request, _ in open_ones))
    for request, use in open_ones:
        permitted("Bash", given, use, answers[request])


def question() -> None:
    options = [{"label": "Red"}, {"label": "Blue"}]
    given = {"questions": [{"question": "Which colour?", "options": options}]}
    request, use = ask("AskUserQuestion", given)
    reply = replies(request)[request]
    answer = reply.get("updatedInput", {}).get("answers", {}).get("Which colour?")
    used(use, f"answered: {answer}", error=reply["behavior"] != "allow")
    text(f"The colour is {answer}.")


def plan() -> None:
    given = {"plan": "First this, then that."}
    request, use = ask("ExitPlanMode", given)
    permitted("ExitPlanMode", given, use, replies(request)[request])


def slow() -> bool:
    """Until it is interrupted, which ends the turn; a minute at most."""
    for tick in range(600):
        entry = heard(0.1)
        if entry is None:
            if tick % 5 == 0:
                text(f"tick {tick}")
        elif entry["type"] == "control_request" and entry["request"]["subtype"] == "interrupt":
            answer = template("control_response")
            answer["response"]["request_id"] = entry["request_id"]
            put(answer)
            used_up = template("user")
            words = "[Request interrupted by user]"
            used_up["message"]["content"] = [{"type": "text", "text": words}]
            put(used_up)
            return False
        else:
            queued.append(entry)
    return True


def background() -> None:
    put({"type": "system", "subtype": "task_started", "task_id": "b1", "description": "Sleep"})


def odd() -> None:
    request = str(uuid.uuid4())
    put({"type": "control_request", "request_id": request, "request": {"subtype": "sing"}})
    while True:
        entry = heard(60)
        if entry is not None and entry["type"] == "control_response":
            assert entry["response"]["subtype"] == "error", entry
            return text(f"told: {entry['response']['error']}")


def withdraw() -> None:
    request, use = ask("Bash", {"command": "true"})
    time.sleep(0.2)
    put({"type": "control_cancel_request", "request_id": request})
    used(use, "cancelled", error=True)


def turn(words: str) -> None:
    global failed
    digest = hashlib.sha256(words.encode()).hexdigest()
    print(f"what it was told: {digest}", file=sys.stderr, flush=True)
    init = template("system", "init")
    init["cwd"] = os.getcwd()
    put(init)
    went_well = True
    if "permission" in words:
        permission(1)
    elif "twice" in words:
        permission(2)
    elif "question" in words:
        question()
    elif "plan" in words:
        plan()
    elif "slow" in words:
        went_well = slow()
    elif "background" in words:
        background()
    elif "odd" in words:
        odd()
    elif "withdraw" in words:
        withdraw()
    elif "fail" in words:
        went_well = False
    if went_well:
        text(f"This is the answer to: {words[:60]}")
    end = template("result", "success" if went_well else "error_during_execution")
    end["permission_denials"] = denials
    put(end)
    failed = not went_well
    if "background" in words:
        time.sleep(1)
        put({"type": "system", "subtype": "task_notification", "task_id": "b1", "summary": "done"})
        turn("the task is done")


while True:
    following = queued.pop(0) if queued else heard(60)
    if following is not None and following["type"] == "user":
        turn(following["message"]["content"][0]["text"])
