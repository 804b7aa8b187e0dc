"""A simulated agent: no model, no network. It does the steps that stand in its prompt.

``simulated.py [--input-format stream-json] …`` Without the option it reads its prompt from
standard input and writes plain text; with it, it speaks JSON both ways, as Claude Code does.
It is run by its path and imports nothing of mam, as any agent.

A step is a line of its own in the prompt, indented: ``work SECONDS``, ``write FILE``, ``fail
WORDS``, ``fail-first WORDS`` (only the first attempt does), ``limit-first SECONDS`` (the first
attempt meets a usage limit), ``silent SECONDS``, ``ask COMMAND`` (JSON only: it waits for a
person). A prompt without steps is worked on for a moment. Every line that is written says that
it is simulated.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

VERBS = ("work", "write", "fail", "fail-first", "limit-first", "silent", "ask")
TICK_SEC = 0.5
THOUGHTS = (
    "reading the code",
    "looking for callers",
    "writing a test",
    "running the tests",
    "comparing two ways",
    "tidying up",
)


class Failed(Exception):
    """The simulated work ends badly; the words are the last ones."""


def steps_of(prompt: str) -> list[tuple[str, str]]:
    found = []
    for line in prompt.splitlines():
        verb, _, rest = line.strip().partition(" ")
        if line.startswith("  ") and verb in VERBS:
            found.append((verb, rest.strip()))
    return found or [("work", "3")]


def is_first_attempt() -> bool:
    return os.environ.get("MAM_ATTEMPT", "1") == "1"


class Plain:
    """Text out, one line each; nobody can be asked."""

    def say(self, words: str) -> None:
        sys.stdout.write(f"[simulated] {words}\n")
        sys.stdout.flush()

    def tick(self) -> None:
        """Half a second of what looks like work."""
        time.sleep(TICK_SEC)

    def write(self, name: str) -> None:
        _write(name)
        self.say(f"wrote {name}")

    def ask(self, command: str) -> None:
        self.say(f"would ask whether to run: {command}")

    def limit(self, seconds: str) -> None:
        raise Failed(f"usage limit reached (simulated); try again in {seconds} seconds")


class Both:
    """JSON lines in and out: it asks, and counts tokens that nobody used."""

    def __init__(self) -> None:
        self.session = str(uuid.uuid4())
        self.tokens = 0
        self.denied: list[dict[str, Any]] = []
        self.later: list[dict[str, Any]] = []
        self._rest = b""

    # -- lines ---------------------------------------------------------------------------------

    def put(self, kind: str, **content: Any) -> None:
        marks = {"session_id": self.session, "uuid": str(uuid.uuid4()), "simulated": True}
        entry = {"type": kind, **content, **marks}
        sys.stdout.write(json.dumps(entry) + "\n")
        sys.stdout.flush()

    def heard(self, seconds: float) -> dict[str, Any] | None:
        """The next line; None when there is none yet. The end of the input is our end."""
        if b"\n" not in self._rest:
            if not select.select([0], [], [], seconds)[0]:
                return None
            data = os.read(0, 65536)
            if not data:
                sys.exit(0)
            self._rest += data
            if b"\n" not in self._rest:
                return None
        line, _, self._rest = self._rest.partition(b"\n")
        entry: dict[str, Any] = json.loads(line)
        return entry

    def turns(self) -> Iterator[str]:
        """What a person says, one after the other."""
        while True:
            entry = self.later.pop(0) if self.later else self.heard(60)
            if entry is not None and entry["type"] == "user":
                yield "\n".join(part.get("text", "") for part in entry["message"]["content"])

    # -- what a turn is made of ----------------------------------------------------------------

    def content(self, *blocks: dict[str, Any]) -> None:
        message = {"role": "assistant", "model": "simulated", "content": list(blocks)}
        self.put("assistant", message={"type": "message", **message}, parent_tool_use_id=None)

    def say(self, words: str) -> None:
        self.content({"type": "text", "text": f"[simulated] {words}"})

    def tick(self) -> None:
        self.tokens += 180
        usage = {"input_tokens": 9 * self.tokens, "output_tokens": self.tokens}
        event = {"type": "message_delta", "delta": {}, "usage": usage}
        self.put("stream_event", event=event, parent_tool_use_id=None)
        until = time.monotonic() + TICK_SEC
        while (left := until - time.monotonic()) > 0:
            entry = self.heard(left)
            if entry is not None:
                self._meanwhile(entry)

    def _meanwhile(self, entry: dict[str, Any]) -> None:
        if entry["type"] == "control_request":
            answer = {"subtype": "success", "request_id": entry["request_id"], "response": {}}
            self.put("control_response", response=answer)
            raise Failed("interrupted by a person")
        self.later.append(entry)

    def write(self, name: str) -> None:
        use = self._use("Write", {"file_path": name, "content": "simulated"})
        _write(name)
        self._used(use, "written (simulated)")

    def ask(self, command: str) -> None:
        given = {"command": command, "description": "Simulated: nothing is run"}
        use, request = self._use("Bash", given), str(uuid.uuid4())
        asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": given}
        self.put("control_request", request_id=request, request={**asked, "tool_use_id": use})
        reply = self._reply(request)
        if reply.get("behavior") == "allow":
            self._used(use, f"simulated: `{command}` would have been run")
            return
        self.denied.append({"tool_name": "Bash", "tool_use_id": use, "tool_input": given})
        self._used(use, str(reply.get("message", "denied")), error=True)
        self.say(f"goes on without it: {reply.get('message', 'denied')}")

    def _reply(self, request: str) -> dict[str, Any]:
        while True:
            entry = self.heard(60)
            if entry is None:
                continue
            response = entry.get("response", {})
            if entry["type"] == "control_response" and response.get("request_id") == request:
                reply: dict[str, Any] = response.get("response", {})
                return reply
            self._meanwhile(entry)

    def _use(self, tool: str, given: dict[str, Any]) -> str:
        use = f"toolu_{uuid.uuid4().hex[:20]}"
        self.content({"type": "tool_use", "id": use, "name": tool, "input": given})
        return use

    def _used(self, use: str, words: str, *, error: bool = False) -> None:
        result = {"tool_use_id": use, "type": "tool_result", "content": words, "is_error": error}
        self.put("user", message={"role": "user", "content": [result]}, parent_tool_use_id=None)

    def limit(self, seconds: str) -> None:
        raise Failed(f"usage limit reached (simulated); try again in {seconds} seconds")

    # -- a turn --------------------------------------------------------------------------------

    def begin(self) -> None:
        facts = {"cwd": os.getcwd(), "model": "simulated", "tools": ["Bash", "Write"]}
        self.put("system", subtype="init", permissionMode="default", **facts)

    def end(self, words: str, *, failed: bool = False) -> None:
        cost = round(self.tokens * 0.00003, 4)
        used = {"inputTokens": 9 * self.tokens, "outputTokens": self.tokens, "costUSD": cost}
        self.put(
            "result",
            subtype="error_during_execution" if failed else "success",
            is_error=failed,
            result=f"[simulated] {words}",
            total_cost_usd=cost,
            modelUsage={"simulated": used},
            permission_denials=self.denied,
        )


def _write(name: str) -> None:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "a", encoding="utf-8") as file:
        job = os.environ.get("MAM_JOB_ID", "by hand")
        file.write(f"Simulated: written by a simulated agent for job {job}. No model was asked.\n")


def do(prompt: str, voice: Plain | Both) -> None:
    """The steps of a prompt; raises `Failed`."""
    pace = random.Random(prompt)
    for verb, rest in steps_of(prompt):
        if verb == "work":
            for tick in range(max(1, round(float(rest or "1") / TICK_SEC))):
                if tick % 2 == 0:
                    voice.say(pace.choice(THOUGHTS))
                voice.tick()
        elif verb == "write":
            voice.write(rest)
        elif verb == "ask":
            voice.ask(rest)
        elif verb == "silent":
            voice.say("will be silent now, as an agent that hangs")
            time.sleep(float(rest))
        elif verb == "fail" or (verb == "fail-first" and is_first_attempt()):
            raise Failed(rest)
        elif verb == "limit-first" and is_first_attempt():
            voice.limit(rest)


def plain() -> int:
    voice = Plain()
    voice.say("this is a simulated agent: no model is asked, and nothing is bought")
    try:
        do(sys.stdin.read(), voice)
    except Failed as problem:
        voice.say(f"error: {problem}")
        return 1
    voice.say("done")
    return 0


def both() -> int:
    sys.stderr.write("[simulated] this is a simulated agent that speaks both ways\n")
    sys.stderr.flush()
    voice = Both()
    for prompt in voice.turns():
        voice.begin()
        try:
            do(prompt, voice)
        except Failed as problem:
            voice.end(str(problem), failed=True)
        else:
            voice.end("done")
    return 0


if __name__ == "__main__":
    sys.exit(both() if "--input-format" in sys.argv else plain())
