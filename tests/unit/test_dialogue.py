"""The two-way stream of Claude Code: on the recording of a real one, and on what none would say."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from mam_core.agents.dialogue import dialogue_for, is_two_way
from mam_core.agents.dialogue.claude import LINGER_SEC, MAX_QUESTIONS, ClaudeDialogue
from mam_core.agents.profiles import BUILT_IN, Mode, Profile, PromptWay
from mam_core.agents.streams import Happening, Kind, StreamFormat
from mam_core.agents.streams.events import told
from mam_core.errors import InvalidField
from mam_core.messages import Message, MessageKind, Receipt, Stage
from mam_core.records import Reason
from tests.support.recordings import RECORDED_AT, SAMPLES
from tests.support.rows import each_row

LINES = (SAMPLES / "claude" / "permission.control.jsonl").read_bytes().splitlines(keepends=True)
RECORDED = [json.loads(line) for line in LINES]
QUESTION = next(line for line in RECORDED if line["type"] == "control_request")
#: Where the recorded turns end.
RESULTS = [number for number, line in enumerate(RECORDED) if line["type"] == "result"]


def a_dialogue(prompt: str = "do it") -> ClaudeDialogue:
    made = ClaudeDialogue(lambda: RECORDED_AT)
    made.begin(prompt)
    return made


def message(kind: MessageKind, text: str = "", n: int = 1, to: str = "") -> Message:
    return Message(n, kind, text, "ann", "", 1, to=to)


def answer(text: str, n: int = 1, to: str = "") -> Message:
    return message(MessageKind.ANSWER, text, n, to)


def waits(dialogue: ClaudeDialogue) -> bool:
    return dialogue.waits_for_person


def spoken(dialogue: ClaudeDialogue) -> list[dict[str, Any]]:
    return [json.loads(line) for line in dialogue.spoken().splitlines()]


def hear(dialogue: ClaudeDialogue, *entries: dict[str, Any]) -> list[Happening]:
    lines = (json.dumps(entry).encode() + b"\n" for entry in entries)
    return [found for line in lines for found in dialogue.feed(line)]


def states(happened: list[Happening]) -> list[str]:
    return [str(one.data["state"]) for one in happened if one.kind is Kind.STATE]


def a_question(request_id: str, tool: str = "Bash", **given: Any) -> dict[str, Any]:
    request = {**QUESTION["request"], "tool_name": tool, "input": given or {"command": "make"}}
    request["tool_use_id"] = f"use-{request_id}"
    return {"type": "control_request", "request_id": request_id, "request": request}


def a_result(**more: Any) -> dict[str, Any]:
    return {**RECORDED[RESULTS[0]], **more}


INIT = next(line for line in RECORDED if line.get("subtype") == "init")


class TestTheRecording:
    def test_three_turns_with_a_permission_and_an_interrupt(self) -> None:
        """Each line of ours stands where the real one waited for it."""
        dialogue = a_dialogue("Please do this: scenario=permission now")
        (first,) = spoken(dialogue)
        assert first["message"]["content"][0]["text"].endswith("scenario=permission now")
        at = RECORDED.index(QUESTION)
        happened = hear(dialogue, *RECORDED[: at + 1])
        asked = [one for one in happened if one.kind is Kind.QUESTION]
        assert [one.text for one in asked] == ["Bash: python3 -c 'print(6*7)' && touch granted.txt"]
        assert waits(dialogue)

        dialogue.offer(answer("y", to=QUESTION["request_id"]))
        assert spoken(dialogue) == [
            {
                "type": "control_response",
                "response": {
                    "subtype": "success",
                    "request_id": QUESTION["request_id"],
                    "response": {"behavior": "allow", "updatedInput": QUESTION["request"]["input"]},
                },
            }
        ]
        assert not waits(dialogue)
        assert dialogue.receipts() == [Receipt(1, Stage.SUBMITTED, "allow")]
        happened += hear(dialogue, *RECORDED[at + 1 : RESULTS[0] + 1])
        assert dialogue.receipts() == [Receipt(1, Stage.ACCEPTED, "the agent went on")]

        dialogue.offer(message(MessageKind.SAY, "plain", 2))
        assert spoken(dialogue)[0]["message"]["content"] == [{"type": "text", "text": "plain"}]
        happened += hear(dialogue, *RECORDED[RESULTS[0] + 1 : RESULTS[1] + 1])
        assert dialogue.receipts() == [
            Receipt(2, Stage.SUBMITTED),
            Receipt(2, Stage.ACCEPTED, "a turn began"),
        ]

        dialogue.offer(message(MessageKind.SAY, "slow", 3))
        happened += hear(dialogue, RECORDED[RESULTS[1] + 1])
        dialogue.offer(message(MessageKind.INTERRUPT, n=4))
        said = spoken(dialogue)[-1]
        assert said["request"] == {"subtype": "interrupt"}
        taken = json.loads(json.dumps(RECORDED[RESULTS[1] + 2]))
        assert taken["type"] == "control_response"
        taken["response"]["request_id"] = said["request_id"]
        happened += hear(dialogue, taken, *RECORDED[RESULTS[1] + 3 :])
        assert dialogue.receipts()[-1] == Receipt(4, Stage.ACCEPTED, "the agent stopped its turn")
        outcome = dialogue.end(1, None)
        assert (outcome.ok, outcome.reason) == (False, Reason.AGENT)
        assert outcome.tokens.input == 3690, "of all turns"
        assert states(happened) == ["working", "waiting"] + ["working", "idle"] * 3
        assert dialogue.news() == []

    def test_a_state_is_told_before_the_question_that_follows_it(self) -> None:
        """A worker that is kept waiting reads both at once; told later, the state of the line
        before would say that the question is settled, and nobody could answer it."""
        dialogue = a_dialogue()
        at = RECORDED.index(QUESTION)
        lines = b"".join(json.dumps(entry).encode() + b"\n" for entry in RECORDED[: at + 1])
        order = [one for one in dialogue.feed(lines) if one.kind in (Kind.STATE, Kind.QUESTION)]
        assert [one.kind for one in order] == [Kind.STATE, Kind.QUESTION, Kind.STATE]
        assert states(order) == ["working", "waiting"]

    def test_the_event_of_a_question_says_what_would_be_done(self) -> None:
        """Without keys and places (G23)."""
        dialogue = a_dialogue()
        given: dict[str, Any] = {
            "command": "curl -H 'token: abcdef123456' /srv/ann/x/run.sh",
            "timeout": 5,
        }
        question, _ = hear(dialogue, a_question("q-1", **given))
        event = told(question)
        assert event is not None
        assert event.name == "permission_required"
        assert event.data["question"] == "q-1"
        shown = json.dumps(event.data) + event.detail
        assert "curl" in shown
        assert "abcdef123456" not in shown
        assert "/srv/ann" not in shown
        assert event.data["input"]["timeout"] == "5"


class TestAnswers:
    @pytest.mark.parametrize(
        ("text", "reply"),
        [
            ("y", {"behavior": "allow", "updatedInput": {"command": "make"}}),
            ("n", {"behavior": "deny", "message": "The operator does not permit this."}),
            ("use ninja", {"behavior": "deny", "message": "use ninja"}),
        ],
    )
    def test_to_a_tool(self, text: str, reply: dict[str, Any]) -> None:
        dialogue = a_dialogue()
        hear(dialogue, a_question("q-1"))
        dialogue.offer(answer(text))
        assert spoken(dialogue)[-1]["response"]["response"] == reply

    def test_a_persons_no_is_not_a_settings_refusal(self) -> None:
        dialogue = a_dialogue()
        hear(dialogue, INIT, a_question("q-1"))
        dialogue.offer(answer("n"))
        denial = {"tool_name": "Bash", "tool_use_id": "use-q-1", "tool_input": {}}
        hear(dialogue, a_result(permission_denials=[denial]))
        assert dialogue.end(0, None).ok

    def test_a_settings_refusal_still_is_one(self) -> None:
        dialogue = a_dialogue()
        hear(dialogue, INIT, a_question("q-1"))
        dialogue.offer(answer("n"))
        mine = {"tool_name": "Bash", "tool_use_id": "use-q-1", "tool_input": {}}
        other = {"tool_name": "WebFetch", "tool_use_id": "another", "tool_input": {}}
        hear(dialogue, a_result(permission_denials=[mine, other]))
        outcome = dialogue.end(0, None)
        assert (outcome.reason, outcome.denials) == (Reason.REFUSED, ("WebFetch",))

    @pytest.mark.parametrize(("text", "chosen"), [("2", "Blue"), ("green", "green"), ("9", "9")])
    def test_a_question_with_choices_takes_the_answer(self, text: str, chosen: str) -> None:
        question = {"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]}
        dialogue = a_dialogue()
        hear(dialogue, a_question("q-1", "AskUserQuestion", questions=[question]))
        dialogue.offer(answer(text))
        reply = spoken(dialogue)[-1]["response"]["response"]
        assert reply["behavior"] == "allow"
        assert reply["updatedInput"] == {"questions": [question], "answers": {"Which?": chosen}}

    def test_several_questions_in_one_get_the_words_as_they_are(self) -> None:
        dialogue = a_dialogue()
        both = [{"question": "Which?"}, {"question": "Why?"}]
        hear(dialogue, a_question("q-1", "AskUserQuestion", questions=both))
        dialogue.offer(answer("blue, because"))
        reply = spoken(dialogue)[-1]["response"]["response"]
        assert reply == {"behavior": "deny", "message": "blue, because"}

    def test_the_oldest_is_meant_where_none_is_named(self) -> None:
        dialogue = a_dialogue()
        hear(dialogue, a_question("q-1"), a_question("q-2"))
        dialogue.offer(answer("y"))
        assert spoken(dialogue)[-1]["response"]["request_id"] == "q-1"
        assert dialogue.waits_for_person

    @pytest.mark.parametrize(
        ("to", "words"), [("", "it asks nothing just now"), ("q-0", "no longer open")]
    )
    def test_to_nothing_is_refused(self, to: str, words: str) -> None:
        dialogue = a_dialogue()
        dialogue.offer(answer("y", to=to))
        (receipt,) = dialogue.receipts()
        assert receipt.stage is Stage.REFUSED
        assert words in receipt.words

    def test_that_was_read_is_taken_though_its_tool_is_silent_for_long(self) -> None:
        dialogue = a_dialogue()
        hear(dialogue, a_question("q-1"))
        dialogue.was_read()
        dialogue.offer(answer("y"))
        dialogue.was_read()
        assert dialogue.receipts()[-1] == Receipt(1, Stage.ACCEPTED, "the agent read it")

    def test_a_withdrawn_question_is_open_no_more(self) -> None:
        dialogue = a_dialogue()
        hear(dialogue, a_question("q-1"))
        happened = hear(dialogue, {"type": "control_cancel_request", "request_id": "q-1"})
        assert not dialogue.waits_for_person
        assert [one.data.get("settled") for one in happened] == [None, "q-1"]
        dialogue.offer(answer("y", to="q-1"))
        assert dialogue.receipts()[-1].stage is Stage.REFUSED


class TestWhatNobodyKnows:
    def test_an_unknown_request_is_answered_with_an_error(self) -> None:
        dialogue = a_dialogue()
        dialogue.spoken()
        hear(dialogue, {"type": "control_request", "request_id": "r", "request": {"subtype": "x"}})
        (said,) = spoken(dialogue)
        assert (said["response"]["subtype"], said["response"]["request_id"]) == ("error", "r")
        assert not dialogue.waits_for_person

    def test_one_question_too_many_is_denied(self) -> None:
        dialogue = a_dialogue()
        dialogue.spoken()
        hear(dialogue, *(a_question(f"q-{n}") for n in range(MAX_QUESTIONS + 1)))
        (said,) = spoken(dialogue)
        assert said["response"]["request_id"] == f"q-{MAX_QUESTIONS}"
        assert said["response"]["response"]["behavior"] == "deny"

    @each_row("request_id", [None, 5, "", ["x"], "x" * 10_000])
    def test_a_request_without_a_name_is_passed_over(self, request_id: object) -> None:
        dialogue = a_dialogue()
        dialogue.spoken()
        hear(dialogue, {**a_question("q"), "request_id": request_id})
        assert dialogue.spoken() == b""
        assert not dialogue.waits_for_person

    def test_torn_and_broken_lines_cost_a_happening_at_most(self) -> None:
        """Truncated, garbled and shuffled at random: no exception, and no question out of thin
        air."""
        chance = random.Random(6)
        extra = [a_question("q-9"), {"type": "control_cancel_request", "request_id": "q-9"}]
        lines = LINES + [json.dumps(entry).encode() + b"\n" for entry in extra]
        for _ in range(300):
            dialogue = a_dialogue()
            for n in range(12):
                line = bytearray(chance.choice(lines))
                for _ in range(chance.choice([0, 0, 1, 5])):
                    line[chance.randrange(len(line))] = chance.randrange(256)
                piece = bytes(line[: chance.choice([len(line), chance.randrange(len(line))])])
                dialogue.feed(piece, aside=chance.random() < 0.1)
                kind = chance.choice(list(MessageKind))
                dialogue.offer(message(kind, chance.choice(["y", "2", "words"]), n + 1))
                dialogue.may_hang_up(float(n))
                for said in dialogue.spoken().splitlines():
                    assert isinstance(json.loads(said), dict)
            dialogue.close()
            finished = [one.n for one in dialogue.receipts() if one.stage.is_finished]
            assert len(finished) == len(set(finished)), "no message ends twice"

    @each_row(
        "change",
        [
            lambda entry: entry["request"].pop("input"),
            lambda entry: entry["request"].update(input="a text"),
            lambda entry: entry["request"].update(tool_name=None),
            lambda entry: entry["request"].update(input={"command": "\ud800"}),
            lambda entry: entry["request"].update(
                input={"questions": [5]}, tool_name="AskUserQuestion"
            ),
            lambda entry: entry.update(request=7),
        ],
    )
    def test_odd_questions_can_still_be_answered(
        self, change: Callable[[dict[str, Any]], object]
    ) -> None:
        entry = json.loads(json.dumps(QUESTION))
        change(entry)
        dialogue = a_dialogue()
        hear(dialogue, entry)
        dialogue.offer(answer("y"))
        assert all(isinstance(one, dict) for one in spoken(dialogue))


class TestTheEnd:
    def test_its_input_is_closed_a_moment_after_the_last_turn(self) -> None:
        dialogue = a_dialogue()
        assert not dialogue.may_hang_up(0.0)
        hear(dialogue, INIT)
        assert not dialogue.may_hang_up(100.0)
        hear(dialogue, a_result())
        assert not dialogue.may_hang_up(200.0)
        assert not dialogue.may_hang_up(200.0 + LINGER_SEC / 2)
        assert dialogue.may_hang_up(200.1 + LINGER_SEC)
        assert not dialogue.may_hang_up(300.0), "only once"
        dialogue.offer(message(MessageKind.SAY, "wait"))
        assert dialogue.receipts() == [Receipt(1, Stage.REFUSED, "its agent is ending")]

    def test_a_message_in_the_last_moment_is_another_turn(self) -> None:
        dialogue = a_dialogue()
        hear(dialogue, INIT, a_result())
        assert not dialogue.may_hang_up(0.0)
        dialogue.offer(message(MessageKind.SAY, "wait"))
        assert not dialogue.may_hang_up(5.0)
        hear(dialogue, INIT)
        assert not dialogue.may_hang_up(50.0)

    def test_a_message_whose_turn_never_begins_is_not_called_taken(self) -> None:
        dialogue = a_dialogue()
        hear(dialogue, INIT)
        dialogue.offer(message(MessageKind.SAY, "and this"))
        hear(dialogue, a_result())
        dialogue.may_hang_up(0.0)
        assert dialogue.may_hang_up(60.0)
        assert dialogue.receipts()[-1].stage is Stage.UNCONFIRMED

    def test_what_runs_in_the_background_is_waited_for(self) -> None:
        lines = (SAMPLES / "claude" / "background.acceptEdits.jsonl").read_bytes()
        recorded = [json.loads(line) for line in lines.splitlines()]
        first = next(n for n, entry in enumerate(recorded) if entry["type"] == "result")
        dialogue = a_dialogue()
        hear(dialogue, *recorded[: first + 1])
        assert not dialogue.may_hang_up(0.0)
        assert not dialogue.may_hang_up(30.0), "the shell is not done"
        hear(dialogue, *recorded[first + 1 :])
        dialogue.may_hang_up(40.0)
        assert dialogue.may_hang_up(40.1 + LINGER_SEC)
        assert dialogue.end(0, None).ok

    def test_who_interrupts_may_think_before_he_speaks(self) -> None:
        dialogue = a_dialogue()
        hear(dialogue, INIT)
        dialogue.offer(message(MessageKind.INTERRUPT))
        request_id = spoken(dialogue)[-1]["request_id"]
        done = {"type": "control_response", "response": {"subtype": "success"}}
        done["response"]["request_id"] = request_id  # type: ignore[index]  # a recorded line: any JSON
        hear(dialogue, done, RECORDED[RESULTS[2]])
        dialogue.may_hang_up(0.0)
        assert not dialogue.may_hang_up(100.0)
        assert dialogue.waits_for_person
        dialogue.offer(message(MessageKind.SAY, "so instead", 2))
        assert not dialogue.waits_for_person

    def test_without_a_turn_there_is_nothing_to_interrupt(self) -> None:
        dialogue = a_dialogue()
        hear(dialogue, INIT, a_result())
        dialogue.offer(message(MessageKind.INTERRUPT))
        assert dialogue.receipts() == [Receipt(1, Stage.REFUSED, "no turn is under way")]

    def test_a_prompt_that_json_cannot_carry_is_refused(self) -> None:
        with pytest.raises(InvalidField, match="half a character"):
            ClaudeDialogue(lambda: 0.0).begin("\ud83d")


class TestWhoSpeaksBothWays:
    def test_the_built_in_claude_does(self) -> None:
        assert dialogue_for(BUILT_IN["claude-code"]) is not None
        assert [name for name, profile in BUILT_IN.items() if is_two_way(profile)] == [
            "claude-code"
        ]

    @each_row(
        ("command", "both"),
        [
            (("claude", "-p", "--output-format", "stream-json", "--verbose"), False),
            (("claude", "-p", "--input-format", "stream-json"), True),
            (("claude", "-p", "--input-format=stream-json"), True),
            (("claude", "--input-format", "stream-json", "--input-format", "text"), False),
            (("claude", "-p", "--input-format"), False),
        ],
    )
    def test_a_command_of_the_users_own_decides(self, command: tuple[str, ...], both: bool) -> None:
        profile = Profile("x", command, mode=Mode.STREAM, stream=StreamFormat.CLAUDE)
        assert is_two_way(profile) is both

    def test_a_prompt_in_the_command_is_not_said_again(self) -> None:
        command = ("claude", "--input-format", "stream-json", "{prompt}")
        profile = Profile(
            "x", command, PromptWay.ARGUMENT, mode=Mode.STREAM, stream=StreamFormat.CLAUDE
        )
        assert not is_two_way(profile)
