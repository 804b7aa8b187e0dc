"""opencode: the events that a plugin of ours is told, left in the same spool as hooks.

Recorded with 1.18.33: the plugin's events and their fields, and that a local plugin
makes a start wait for the npm registry (80 s where it is out of reach). Documented
only: `OPENCODE_CONFIG_DIR` names one more folder whose plugins are loaded, beside
the user's own; `session.error` and the `question` events. Where the user has set that
variable, it is theirs, and the screen is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from mam_core.agents.calls import OpenCall, OpenCalls
from mam_core.agents.channels import Prepared, Reader
from mam_core.agents.channels.reading import ChannelReader, Mute, SilentEar, in_short
from mam_core.agents.channels.spool import Call, Spool
from mam_core.agents.profiles import Profile
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.streams.values import doing, label, listed, table, text
from mam_core.disk import Folder

VARIABLE = "OPENCODE_CONFIG_DIR"
CONFIG = "opencode"
PLUGIN = "mam.js"

#: What the plugin writes down. Its words are few, so a call is small; it fails in silence, since
#: what it throws would be the agent's trouble.
EVENTS = (
    "session.created", "session.status", "session.idle", "session.error", "permission.asked",
    "permission.replied", "question.asked", "question.replied", "question.rejected",
    "message.part.updated",
)  # fmt: skip

_SOURCE = """\
// Written by mam: leaves what opencode does in a folder, for the worker that runs it.
import { renameSync, writeFileSync } from "node:fs"

const spool = %(spool)s
const wanted = new Set(%(events)s)
const cut = (value) => (typeof value === "string" ? value.slice(0, 2000) : undefined)
const told = new Map()
let count = 0

export const MamStates = async () => ({
  event: async ({ event }) => {
    try {
      if (!wanted.has(event?.type)) return
      const said = event.properties ?? {}
      const part = said.part
      if (event.type === "message.part.updated") {
        // Of all the parts of an answer only tools, and of a tool that it begins and ends.
        const status = part?.type === "tool" ? part.state?.status : undefined
        if (!status || status === "pending" || told.get(part.callID) === status) return
        status === "running" ? told.set(part.callID, status) : told.delete(part.callID)
      }
      const kept = {
        sessionID: cut(said.sessionID),
        info: { id: cut(said.info?.id), parentID: cut(said.info?.parentID) },
        status: { type: cut(said.status?.type), message: cut(said.status?.message) },
        permission: cut(said.permission),
        patterns: said.patterns?.slice?.(0, 3).map(cut),
        questions: said.questions?.slice?.(0, 1).map((one) => ({ question: cut(one?.question) })),
        error: { name: cut(said.error?.name), data: { message: cut(said.error?.data?.message) } },
        part: part && {
          type: cut(part.type), tool: cut(part.tool), callID: cut(part.callID),
          state: { status: cut(part.state?.status), input: {
            description: cut(part.state?.input?.description),
            command: cut(part.state?.input?.command),
          } },
        },
      }
      const name = `${event.type}.${process.pid}-${count++}`
      const line = JSON.stringify({ pid: process.pid, properties: kept })
      writeFileSync(`${spool}/.${name}`, line, { mode: 0o600 })
      renameSync(`${spool}/.${name}`, `${spool}/${name}`)
    } catch {}
  },
})
"""


def prepare(profile: Profile, folder: str) -> Prepared:
    spool = Spool(folder)
    spool.empty()
    if VARIABLE in {**os.environ, **profile.env}:
        return Prepared()
    source = _SOURCE % {"spool": json.dumps(spool.path), "events": json.dumps(EVENTS)}
    config = os.path.join(os.path.abspath(folder), CONFIG)
    with Folder.open(os.path.join(config, "plugin"), create=True) as place:
        place.write(PLUGIN, source.encode())
    return Prepared(env={VARIABLE: config})


def reader(folder: str) -> Reader:
    if not os.path.exists(os.path.join(folder, CONFIG, "plugin", PLUGIN)):
        return Mute()
    return ChannelReader(OpencodeEar(), Spool(folder))


class OpencodeEar(SilentEar):
    """Sessions that a tool starts have a parent, and are not the turn."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.calls = OpenCalls()
        self._pid: object = None
        self._children: set[str] = set()
        self._is_in_turn = False
        self._error = ""
        self._has_failed = False

    def started(self, pid: int) -> None:
        self._forget()

    def hook(self, call: Call) -> Sign | None:
        if not self._is_ours(call):
            return None
        said = table(call.data.get("properties"))
        child = label(said.get("sessionID")) in self._children
        sign = Sign(AgentState.WORKING, Channel.HOOK, call.event, call.at)
        match call.event:
            case "session.created":
                info = table(said.get("info"))
                if info.get("parentID"):
                    self._children.add(label(info.get("id")))
                return None
            case "session.status" if not child:
                return self._status(sign, said)
            case "session.idle" if not child:
                return self._idle(sign)
            case "message.part.updated":
                self._follow_call(table(said.get("part")))
                return None
            case "session.error" if not child:
                self._note_failure(said)
                return None
            case "permission.asked":
                patterns = " ".join(text(one) for one in listed(said.get("patterns")))
                words = in_short(f"{label(said.get('permission'))}: {patterns}")
                return sign._replace(state=AgentState.WAITING, words=words)
            case "question.asked":
                first = table(next(iter(listed(said.get("questions"))), None))
                words = in_short(first.get("question"))
                return sign._replace(state=AgentState.WAITING, words=words)
            case "permission.replied" | "question.replied" | "question.rejected":
                return sign
        return None

    def _follow_call(self, part: Mapping[str, Any]) -> None:
        call_id, state = label(part.get("callID")), table(part.get("state"))
        status = state.get("status")
        if part.get("type") == "tool" and status == "running":
            self.calls.begin(OpenCall(call_id, label(part.get("tool")), doing(state.get("input"))))
        elif status in ("completed", "error"):
            self.calls.end(call_id)

    def _is_ours(self, call: Call) -> bool:
        """An opencode that the agent starts inherits the variable, and so speaks here, too."""
        pid = call.data.get("pid")
        if self._pid is None:
            self._pid = pid
        return pid == self._pid

    def _status(self, sign: Sign, said: object) -> Sign | None:
        status = table(table(said).get("status"))
        kind = label(status.get("type"))
        rule = f"{sign.rule}: {kind}"
        match kind:
            case "busy":
                was_in_turn, self._is_in_turn = self._is_in_turn, True
                return None if was_in_turn else sign._replace(rule=rule)
            case "retry":
                self._is_in_turn = True
                return sign._replace(rule=rule, words=in_short(status.get("message")))
            case "idle":
                return self._idle(sign._replace(rule=rule))
        return None

    def _idle(self, sign: Sign) -> Sign | None:
        """It says so twice."""
        self.calls.forget()
        if not self._is_in_turn:
            return None
        failed, words = self._has_failed, self._error
        self._is_in_turn = self._has_failed = False
        self._error = ""
        idle = sign._replace(state=AgentState.IDLE, turn_over=True)
        return idle._replace(failed=failed, words=words)

    def _note_failure(self, said: object) -> None:
        """What becomes of it is told by the status that follows; an interrupt is no failure."""
        error = table(table(said).get("error"))
        name = label(error.get("name"))
        if name == "MessageAbortedError":
            return
        self._has_failed = True
        self._error = in_short(f"{name}: {text(table(error.get('data')).get('message'))}")
