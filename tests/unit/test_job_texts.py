"""What is typed into a form is read as the command line would read it."""

from __future__ import annotations

import pytest

from mam_core.errors import InvalidField
from mam_core.fields import EDITABLE, SETTABLE
from mam_core.operations.filled_form import box_of, lacking, misread
from mam_core.operations.job_texts import (
    FIELDS,
    SETTLED,
    as_filled,
    as_request,
    as_texts,
    as_words,
    changed,
)
from mam_core.records import Job, Status

TYPED = {
    "prompt": "  Fix it\nall ",
    "agent": " codex ",
    "agent_session": "tmux:c",
    "timeout_sec": "10m",
    "max_attempts": "3",
    "max_cost": "1.5",
    "expected_artifacts": "a.md\n\n b.md ",
    "memory_max": "8G",
    "not_before": "+2h",
    "group": "",
}


def test_durations_numbers_and_lists_are_read() -> None:
    assert as_request(TYPED) == {
        "prompt": "  Fix it\nall ",  # as it was written
        "agent": "codex",
        "agent_session": "tmux:c",
        "timeout_sec": 600.0,
        "max_attempts": 3,
        "max_cost": 1.5,
        "expected_artifacts": ["a.md", "b.md"],
        "memory_max": "8G",
        "not_before": "+2h",
    }


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("timeout_sec", "soon", "timeout: 'soon' is no duration: say 90s, 10m, 2h or 1d"),
        ("max_attempts", "two", "attempts: 'two' is no whole number"),
        ("max_cost", "much", "max cost: 'much' is no number"),
    ],
)
def test_a_mistake_names_the_box(name: str, text: str, sentence: str) -> None:
    with pytest.raises(InvalidField) as problem:
        as_request({name: text})
    assert problem.value.message == sentence


def test_every_key_that_can_be_set_has_a_box() -> None:
    names = {field.name for field in FIELDS}
    parts = {f"broker_{part}" for part in ("host", "port", "tls", "username", "password_file")}
    assert names == (set(SETTABLE) - {"broker"}) | parts | {"allow_collision"}
    assert set(SETTLED) == names - set(EDITABLE)


def test_a_broker_is_one_key_of_many_boxes() -> None:
    texts = {"broker_host": "mq.example", "broker_port": "8883", "broker_tls": "yes"}
    beside = {"broker_password_file": "secret", "allow_collision": "yes", "auth_token": "yes"}
    assert as_request({**texts, **beside}) == {
        "broker": {"host": "mq.example", "port": 8883, "tls": True},
        "auth_token": True,
    }


def test_a_template_fills_the_boxes() -> None:
    texts = as_filled(
        {
            "agent": "codex",
            "expected_artifacts": ["a.md", "b.md"],
            "timeout_sec": 600,
            "auth_token": True,
            "broker": {"host": "mq.example", "port": 8883, "tls": False},
        }
    )
    filled = {name: text for name, text in texts.items() if text}
    assert filled == {
        "agent": "codex",
        "expected_artifacts": "a.md\nb.md",
        "timeout_sec": "600",
        "auth_token": "yes",
        "broker_host": "mq.example",
        "broker_port": "8883",
    }


def test_a_refusal_finds_its_box() -> None:
    assert box_of("timeout_sec: it must be a number") == ("timeout_sec", "it must be a number")
    assert box_of("broker: port: it must be 1") == ("broker_port", "it must be 1")
    assert box_of("there is no room: at all") == ("", "there is no room: at all")
    assert misread({"timeout_sec": "soon", "max_cost": "much"}).keys() == {
        "timeout_sec",
        "max_cost",
    }
    assert lacking({"prompt": " ", "agent": "a"}, {"agent_session": "l"}) == ["prompt"]


def test_a_job_fills_the_boxes_that_it_has_something_for() -> None:
    job = Job("j1", Status.PENDING, prompt="Do", agent="codex", timeout_sec=90.0, after=("a", "b"))
    texts = as_texts(job)
    assert (texts["prompt"], texts["timeout_sec"], texts["after"]) == ("Do", "90", "a\nb")
    assert texts["idle_timeout_sec"] == texts["model"] == ""


def test_only_what_was_changed_is_asked_for() -> None:
    before = as_texts(Job("j1", Status.PENDING, prompt="Do", agent="codex", group="g"))
    after = {**before, "group": " ", "priority": "5", "agent": "codex "}
    assert changed(before, after) == ({"priority": "5"}, ["group"])


def test_the_words_that_are_shown_are_those_that_the_command_line_takes() -> None:
    from mam_core.cli import edit, register
    from mam_core.cli.job_fields import given_fields
    from mam_core.cli.parser import Parser

    texts = {**TYPED, "prompt": "-n is no option;\n$(nor this)", "validate": "--version"}
    texts |= {"auth_token": "yes", "broker_port": "1", "broker_tls": "yes", "topic_prefix": "a/b"}
    parser = Parser("mam register", "")
    register.options(parser)
    given = given_fields(parser.read(as_words(texts)))
    asked = {**as_request(texts), "memory_max": 8 * 2**30}
    assert {
        name: list(value) if isinstance(value, tuple) else value for name, value in given.items()
    } == asked
    parser = Parser("mam edit", "")
    edit.options(parser)
    args = parser.read(["j1", *as_words({"priority": "5"}, ["group", "timeout_sec"])])
    assert (given_fields(args), args.clear) == ({"priority": 5}, ["group", "timeout"])
