"""The ``:`` line: what it understands, completes and refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_tui.actions import ACTIONS
from mam_tui.commands import (
    VERBS,
    BadCommand,
    Command,
    History,
    aliases,
    completions,
    names,
    parse,
)
from mam_tui.views import VIEWS


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", None),
        ("  ", None),
        ("cancel", Command("cancel")),
        ("q", Command("quit")),
        ("qui", Command("quit")),
        ("filter status:error -x", Command("filter", "status:error -x")),
        ("filter", Command("filter", "")),
        ("sort age", Command("sort", "age")),
        ("sort", Command("sort")),
        ("columns state,id", Command("columns", "state,id")),
        ("columns", Command("columns")),
        ("j", Command("view", "board")),
        ("jobs", Command("view", "board")),
        ("needs", Command("attention")),
        ("hist", Command("view", "history")),
        ("kill", Command("cancel")),
        ("f codex", Command("filter", "codex")),
        ("go job0001", Command("job", "job0001")),
    ],
)
def test_what_is_understood(line: str, command: Command | None) -> None:
    assert parse(line) == command


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("theme", "theme what? it means: choose the colours"),
        ("cancel now", "cancel takes no word"),
        ("fleet now", "fleet takes no word"),
        ("frobnicate", "there is no command 'frobnicate'"),
        ("re", "there is no command 're'; did you mean read-only or refresh or report?"),
    ],
)
def test_what_is_refused(line: str, sentence: str) -> None:
    with pytest.raises(BadCommand) as problem:
        parse(line)
    assert problem.value.message == sentence


def test_an_alias_hides_no_command_and_leads_to_one() -> None:
    assert not set(aliases()) & set(names())
    assert set(aliases().values()) <= set(names())
    given = [
        one for kinds in (ACTIONS, VERBS, VIEWS) for kind in kinds.values() for one in kind.aliases
    ]
    assert len(given) == len(set(given))


def test_completion_offers_commands_and_their_words() -> None:
    assert completions("can") == ["cancel"]
    assert completions("sort st") == ["sort state"]
    assert completions("cancel x") == []
    assert completions("columns id,ag") == ["columns id,agent", "columns id,age"]
    assert completions("columns au") == ["columns auto"]


def test_history_walks_back_and_forth() -> None:
    history = History()
    for line in ("one", "two", "two"):
        history.add(line)
    assert [history.older(), history.older(), history.older()] == ["two", "one", "one"]
    assert [history.newer(), history.newer()] == ["two", ""]


@given(st.text(max_size=60))
def test_any_text_is_a_command_or_a_sentence(line: str) -> None:
    try:
        command = parse(line)
    except BadCommand:
        return
    assert command is None or command.name in names()
