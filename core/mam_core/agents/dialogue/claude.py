"""Claude Code, both ways: ``--input-format stream-json --permission-prompt-tool stdio``.

A permission comes as a `control_request` and goes on with our `control_response`;
a user line begins a turn; an `interrupt` ends one. Recorded: allow, several turns,
interrupt. By the vendor's documents only: deny, answers to `AskUserQuestion`, a
withdrawn request. Whatever else the agent asks of us is answered with an error,
so that it never waits for somebody who is not there.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mam_core.agents.dialogue.questions import Question, asked
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.agents.streams.base import Happening, Kind
from mam_core.agents.streams.claude import ClaudeStream
from mam_core.agents.streams.discretion import short
from mam_core.agents.streams.values import label, table, text
from mam_core.errors import InvalidField
from mam_core.messages import Message, MessageKind, Receipt, Stage

#: Open at once; each may hold megabytes. One more is denied.
MAX_QUESTIONS = 16
_MAX_TASKS = 256
_MAX_ID_CHARS = 200
#: After a turn, before the input is closed: the record is looked at in between, since a message
#: may be on its way.
LINGER_SEC = 0.6
#: So long a message that was written may take to begin its turn, once no other is under way.
_BEGIN_SEC = 15.0
#: So long a task in the background is waited for; then the agent decides, as it does one-way.
_BACKGROUND_SEC = 60.0
#: So long a person who interrupted a turn may take to say what is to be done instead.
_AFTER_INTERRUPT_SEC = 600.0
#: What the first message is among those whose turn has not begun.
_PROMPT = 0


class ClaudeDialogue(ClaudeStream):
    """Reads the lines of one run, and says what there is to say."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._spoken = bytearray()
        self._receipts: list[Receipt] = []
        self._news: list[Happening] = []
        self._state: AgentState | None = None
        self._questions: dict[str, Question] = {}
        self._answers: list[int] = []  #: written, and not shown to be taken
        self._interrupts: dict[str, int] = {}  #: by the id of our request
        self._to_begin: deque[int] = deque()  #: written messages whose turn has not begun
        self._tasks: set[str] = set()  #: in the background
        self._in_turn = False
        self._was_interrupted = False
        self._quiet_since: float | None = None
        self._is_over = False

    # -- what we say -------------------------------------------------------------------------

    def begin(self, prompt: str) -> None:
        try:
            prompt.encode()
        except UnicodeEncodeError:
            raise InvalidField(
                "the prompt has half a character (a lone surrogate), which cannot be sent as JSON"
            ) from None
        self._say_user(prompt)
        self._to_begin.append(_PROMPT)
        self._in_turn = True

    def offer(self, message: Message) -> None:
        self._quiet_since = None
        if self._is_over:
            self._refuse(message, "its agent is ending")
        elif message.kind is MessageKind.SAY:
            self._say_user(message.text)
            self._to_begin.append(message.n)
            self._was_interrupted = False
            self._receipts.append(Receipt(message.n, Stage.SUBMITTED))
        elif message.kind is MessageKind.ANSWER:
            self._answer(message)
        else:
            self._interrupt(message)

    def spoken(self) -> bytes:
        said, self._spoken = bytes(self._spoken), bytearray()
        return said

    def was_read(self) -> None:
        self._confirm_answers("the agent read it")

    def _answer(self, message: Message) -> None:
        wanted = message.to or next(iter(self._questions), "")
        question = self._questions.pop(wanted, None)
        if question is None:
            gone = "the question is no longer open" if message.to else "it asks nothing just now"
            self._refuse(message, gone)
            return
        reply = question.reply(message)
        if reply["behavior"] == "deny" and question.tool_use_id:
            # The result will name it among the denials: it was a person's word, no setting's.
            self._denied.add(question.tool_use_id)
        self._respond(question.request_id, {"subtype": "success", "response": reply})
        self._answers.append(message.n)
        self._receipts.append(Receipt(message.n, Stage.SUBMITTED, str(reply["behavior"])))
        self._settle_question(question, f"{question.verb(reply)} by {message.by or 'a person'}")

    def _interrupt(self, message: Message) -> None:
        if not self._in_turn:
            self._refuse(message, "no turn is under way")
            return
        request_id = f"mam-{message.n}"
        self._interrupts[request_id] = message.n
        self._say(
            {
                "type": "control_request",
                "request_id": request_id,
                "request": {"subtype": "interrupt"},
            }
        )
        self._receipts.append(Receipt(message.n, Stage.SUBMITTED))

    def _refuse(self, message: Message, words: str) -> None:
        self._receipts.append(Receipt(message.n, Stage.REFUSED, words))

    def _say_user(self, words: str) -> None:
        content = [{"type": "text", "text": words}]
        self._say({"type": "user", "message": {"role": "user", "content": content}})

    def _respond(self, request_id: str, response: Mapping[str, Any]) -> None:
        self._say(
            {
                "type": "control_response",
                "response": {**response, "request_id": request_id},
            }
        )

    def _say(self, entry: Mapping[str, Any]) -> None:
        self._spoken += json.dumps(entry).encode() + b"\n"

    # -- what it says ------------------------------------------------------------------------

    def read(self, entry: Mapping[str, Any]) -> Iterable[Happening]:
        """With each line what it says of the state: of many lines at once, a question of a later
        one is not told before the state of an earlier one, which would settle it."""
        return [*self._read(entry), *self.news()]

    def _read(self, entry: Mapping[str, Any]) -> Iterable[Happening]:
        self._quiet_since = None
        self._confirm_answers("the agent went on")
        kind = entry.get("type")
        if kind == "control_request":
            self.evidence.spoke = True
            return list(self._asked(entry))
        if kind == "control_cancel_request":
            return list(self._withdrawn(_id(entry)))
        if kind == "control_response":
            return list(self._responded(table(entry.get("response"))))
        if kind == "system":
            self._note(entry)
        happened = list(super().read(entry))
        if kind == "result":
            self._turn_is_over(entry)
        return happened

    def _asked(self, entry: Mapping[str, Any]) -> Iterator[Happening]:
        request, request_id = table(entry.get("request")), _id(entry)
        kind = label(request.get("subtype"))
        if not request_id:
            yield Happening(Kind.LOG, f"a request without an id was passed over: {kind}")
        elif kind != "can_use_tool":
            yield Happening(Kind.LOG, f"the agent was told that this is not done here: {kind}")
            error = f"this client does not do {kind or 'that'}"
            self._respond(request_id, {"subtype": "error", "error": error})
        elif len(self._questions) >= MAX_QUESTIONS and request_id not in self._questions:
            yield Happening(Kind.LOG, "too many questions at once: one was denied")
            denial = {"behavior": "deny", "message": "too many questions at once"}
            self._respond(request_id, {"subtype": "success", "response": denial})
        else:
            question = asked(request_id, request)
            self._questions[request_id] = question
            self._tell(AgentState.WAITING, "can_use_tool", question.words, question=request_id)
            yield Happening(Kind.QUESTION, question.words, question.data())

    def _withdrawn(self, request_id: str) -> Iterator[Happening]:
        question = self._questions.pop(request_id, None)
        if question is not None:
            self._settle_question(question, "withdrawn by the agent")
            yield Happening(Kind.LOG, f"it asks no longer: {question.words}")

    def _responded(self, response: Mapping[str, Any]) -> Iterator[Happening]:
        n = self._interrupts.pop(_id(response), None)
        if n is None:
            return
        if response.get("subtype") == "success":
            self._was_interrupted = True
            self._receipts.append(Receipt(n, Stage.ACCEPTED, "the agent stopped its turn"))
            yield Happening(Kind.LOG, "the turn was interrupted by a person")
        else:
            words = text(response.get("error")) or "the agent did not stop"
            self._receipts.append(Receipt(n, Stage.REFUSED, short(words)))

    def _note(self, entry: Mapping[str, Any]) -> None:
        kind, task = entry.get("subtype"), label(entry.get("task_id"))
        if kind == "init":
            self._in_turn = True
            if self._to_begin and (n := self._to_begin.popleft()) != _PROMPT:
                self._receipts.append(Receipt(n, Stage.ACCEPTED, "a turn began"))
            self._tell(AgentState.WORKING, "init")
        elif kind == "task_started" and task and len(self._tasks) < _MAX_TASKS:
            self._tasks.add(task)
        elif kind == "task_notification" or _is_finished(entry):
            self._tasks.discard(task)

    def _turn_is_over(self, entry: Mapping[str, Any]) -> None:
        self._in_turn = False
        for question in list(self._questions.values()):
            del self._questions[question.request_id]
            self._settle_question(question, "its turn is over")
        failed = entry.get("is_error") is not False
        self._tell(AgentState.IDLE, "result", turn_over=True, failed=failed)

    # -- what becomes known ------------------------------------------------------------------

    def receipts(self) -> list[Receipt]:
        told, self._receipts = self._receipts, []
        return told

    def news(self) -> list[Happening]:
        told, self._news = self._news, []
        return told

    @property
    def waits_for_person(self) -> bool:
        return bool(self._questions) or (self._was_interrupted and not self._in_turn)

    @property
    def is_resting(self) -> bool:
        return not self._in_turn and not self._is_over

    def may_hang_up(self, now: float) -> bool:
        if self._is_over:
            return False
        if self._in_turn or self._questions:
            self._quiet_since = None
            return False
        if self._quiet_since is None:
            self._quiet_since = now
        if now - self._quiet_since < self._patience():
            return False
        self._is_over = True
        for n in self._to_begin:
            words = "no turn began with it before its agent was let go"
            self._receipts.append(Receipt(n, Stage.UNCONFIRMED, words))
        self._to_begin.clear()
        return True

    def _patience(self) -> float:
        if self._was_interrupted:
            return _AFTER_INTERRUPT_SEC
        if self._to_begin:
            return _BEGIN_SEC
        return _BACKGROUND_SEC if self._tasks else LINGER_SEC

    def _confirm_answers(self, words: str) -> None:
        if self._answers:
            self._receipts += [Receipt(n, Stage.ACCEPTED, words) for n in self._answers]
            self._answers = []

    def _settle_question(self, question: Question, words: str) -> None:
        state = AgentState.WAITING if self._questions else AgentState.WORKING
        self._tell(state, "control_response", words, settled=question.request_id)

    def _tell(
        self,
        state: AgentState,
        rule: str,
        words: str = "",
        *,
        turn_over: bool = False,
        failed: bool = False,
        **more: str,
    ) -> None:
        """Only what is new; that a question was settled always is."""
        if state is self._state and not more:
            return
        self._state = state
        at = self.evidence.now()
        sign = Sign(state, Channel.STREAM, rule, at, short(words), turn_over, failed)
        self._news.append(Happening(Kind.STATE, sign.words, {**sign.to_dict(), **more}))


def _id(entry: Mapping[str, Any]) -> str:
    found = entry.get("request_id")
    return found if isinstance(found, str) and len(found) <= _MAX_ID_CHARS else ""


def _is_finished(entry: Mapping[str, Any]) -> bool:
    status = table(entry.get("patch")).get("status")
    return entry.get("subtype") == "task_updated" and status not in (None, "running", "pending")
