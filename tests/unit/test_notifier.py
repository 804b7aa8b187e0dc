"""When somebody who does not look is called: once, not too often, and with harmless words."""

from __future__ import annotations

import os
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam_core.config import load
from mam_core.operations.attention import Need, NeedKind, Urgency
from mam_core.operations.notifier import TEXT_CELLS, Call, Notifier, sentence
from mam_core.operations.notify_command import MOST_AT_ONCE, NotifyCommand, variables
from mam_core.operations.notify_terminal import form_for, terminal_words
from tests.support.children import is_alive
from tests.support.patience import eventually
from tests.support.rows import each_row

HOSTILE = "\x1b]52;c;ZQ==\x07 \x9c;end\n\x1b\\ \u202e 4;1;50 $(touch /tmp/x) `id`"


def need(number: int = 1, kind: NeedKind = NeedKind.PERMISSION, words: str = "May I?") -> Need:
    return Need(kind, f"job{number}", "claude-code", "tmux:claude", 1, words, 100.0 + number)


class TestTheNotifier:
    def test_calls_once_for_one_question(self) -> None:
        notifier = Notifier(10)
        assert notifier.update([need()], 0, focused=False) is None, "others may come with it"
        assert notifier.due_at() == 1
        call = notifier.update([need()], 1, focused=False)
        assert call is not None
        assert call.text == "job job1 in tmux:claude asks for a permission: May I?"
        assert notifier.due_at() is None
        for later in (2, 30, 3000):
            assert notifier.update([need()], later, focused=False) is None

    def test_says_several_in_one_sentence(self) -> None:
        notifier = Notifier(10)
        many = [need(n, NeedKind.LOST) for n in range(1, 6)] + [need(9)]
        notifier.update(many[:2], 0, focused=False)
        call = notifier.update(many, 1, focused=False)
        assert call is not None
        assert call.text == (
            "6 jobs need you: job9 asks for a permission, job1 was lost, job2 was lost, "
            "job3 was lost and 2 more"
        )

    def test_waits_between_two_calls(self) -> None:
        notifier = Notifier(10)
        notifier.update([need(1)], 0, focused=False)
        notifier.update([need(1)], 1, focused=False)
        assert notifier.update([need(1), need(2)], 3, focused=False) is None
        assert notifier.due_at() == 11
        assert notifier.update([need(1), need(3)], 10, focused=False) is None
        call = notifier.update([need(1), need(3), need(4)], 11, focused=False)
        assert call is not None
        assert [one.job_id for one in call.needs] == ["job3", "job4"], "the second went away"

    def test_calls_nobody_who_looks(self) -> None:
        notifier = Notifier(10)
        assert notifier.update([need(1)], 0, focused=True) is None
        assert notifier.update([need(1)], 50, focused=False) is None, "it was seen"
        notifier.update([need(1), need(2)], 60, focused=False)
        call = notifier.update([need(1), need(2)], 61, focused=False)
        assert call is not None
        assert [one.job_id for one in call.needs] == ["job2"]

    def test_is_not_fooled_by_a_state_that_flickers(self) -> None:
        notifier = Notifier(10)
        notifier.update([need()], 0, focused=False)
        assert notifier.update([need()], 1, focused=False)
        notifier.update([], 2, focused=False)
        same = need()._replace(kind=NeedKind.QUESTION, since=5.0)
        assert notifier.update([same], 5, focused=False) is None
        assert notifier.due_at() is None
        notifier.update([], 20, focused=False)
        assert notifier.update([same], 30, focused=False) is None
        assert notifier.update([same], 31, focused=False), "asked again, long after"

    def test_keeps_quiet_below_the_urgency_that_was_asked_for(self) -> None:
        quiet = [need(1, NeedKind.QUOTA), need(2, NeedKind.BUDGET)]
        for least, told in ((Urgency.LOW, 2), (Urgency.NORMAL, 1), (Urgency.HIGH, 0)):
            notifier = Notifier(10, least)
            notifier.update(quiet, 0, focused=False)
            call = notifier.update(quiet, 1, focused=False)
            assert (len(call.needs) if call else 0) == told

    def test_has_words_for_every_kind(self) -> None:
        assert len({sentence([need(1, kind)]) for kind in NeedKind}) == len(NeedKind)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.booleans()), max_size=60))
def test_nobody_is_told_twice_or_too_often(story: list[tuple[int, bool, bool]]) -> None:
    """Needs that only ever come: whatever the order, each is told at most once."""
    notifier, there, told = Notifier(10), dict[int, Need](), list[str]()
    calls = []
    for now, (number, comes, focused) in enumerate(story):
        if comes:
            there[number] = need(number)
        call = notifier.update(there.values(), now, focused=focused)
        if call is not None:
            assert not focused
            calls.append(now)
            told += [one.job_id for one in call.needs]
    assert len(told) == len(set(told))
    assert all(later - sooner >= 10 for sooner, later in pairwise(calls))


class TestTheTerminal:
    @pytest.mark.parametrize("form", ["osc9", "osc777"])
    @pytest.mark.parametrize("tmux", ["", "/tmp/tmux-0/default,1,0"])
    @settings(max_examples=30)
    @given(text=st.text(max_size=400))
    def test_no_text_can_end_the_sequence_or_begin_another(
        self, form: str, tmux: str, text: str
    ) -> None:
        said = terminal_words(text + HOSTILE, bell=False, form=form, environ={"TMUX": tmux})
        empty = terminal_words("", bell=False, form=form, environ={"TMUX": tmux})
        controls = [c for c in said if ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e"]
        assert controls == [c for c in empty if ord(c) < 32]
        if form == "osc777":
            assert said.count(";") == empty.count(";")
        assert len(said) < TEXT_CELLS * 6

    def test_what_is_written(self) -> None:
        assert terminal_words("hello", bell=True, form="off") == "\a"
        assert terminal_words("hello", bell=False, form="off") == ""
        assert terminal_words("4;1", bell=True, form="osc9") == "\a\x1b]9;mam: 4;1\x1b\\"
        assert terminal_words("a;b", bell=False, form="osc777") == "\x1b]777;notify;mam;a,b\x1b\\"
        inside = {"TMUX": "x"}
        wrapped = "\x1bPtmux;\x1b\x1b]9;mam: a\x1b\x1b\\\x1b\\"
        assert terminal_words("a", bell=False, form="osc9", environ=inside) == wrapped
        assert terminal_words("a", bell=False, form="auto", environ=inside) == ""

    @each_row(
        ("environ", "form"),
        [
            ({"TERM": "xterm-256color"}, "off"),
            ({"TERM": "foot"}, "osc777"),
            ({"TERM": "rxvt-unicode-256color"}, "osc777"),
            ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "osc777"),
            ({"TERM": "xterm-kitty"}, "osc9"),
            ({"TERM_PROGRAM": "iTerm.app"}, "osc9"),
            ({"TERM_PROGRAM": "iTerm.app", "TMUX": "x"}, "off"),
        ],
    )
    def test_only_a_terminal_that_is_known_is_asked(
        self, environ: dict[str, str], form: str
    ) -> None:
        assert form_for(environ) == form


class TestTheCommand:
    @staticmethod
    def call(words: str = "May I?") -> Call:
        needs = (need(1, words=words), need(2))
        return Call(needs, sentence(list(needs)))

    def test_is_told_which_job_of_which_session(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        script = (
            "import os, sys\n"
            "named = {k: v for k, v in os.environ.items() if k.startswith('MAM_')}\n"
            "open(sys.argv[1], 'x').write(repr(sorted(named.items())))\n"
            "print('noise')\n"
        )
        trouble: list[str] = []
        command = NotifyCommand([sys.executable, "-c", script, str(out)], trouble.append)
        inherited = {**os.environ, "MAM_JOB_ID": "an agent's"}
        assert command.run(self.call(HOSTILE), inherited)
        eventually(lambda: out.exists() and out.read_text(), "the program has run")
        command.close()
        told = dict(eval(out.read_text()))
        assert "MAM_JOB_ID" not in told, "it would be taken for an agent"
        assert (told["MAM_NOTIFY_JOB"], told["MAM_NOTIFY_SESSION"]) == ("job1", "tmux:claude")
        assert (told["MAM_NOTIFY_KIND"], told["MAM_NOTIFY_COUNT"]) == ("permission", "2")
        assert told["MAM_NOTIFY_JOBS"] == "job1 job2"
        assert told["MAM_NOTIFY_WORDS"].isprintable()
        assert trouble == []

    def test_that_hangs_is_ended_with_all_that_it_started(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pids = tmp_path / "pids"
        script = f"sleep 600 & echo $! $$ > {pids}; sleep 600"
        trouble: list[str] = []
        command = NotifyCommand(["sh", "-c", script], trouble.append, patience_sec=0.4)
        wait = command._closing.wait

        def after_it_began(step: float) -> bool:
            eventually(lambda: pids.exists() and pids.read_text(), "it has begun")
            return wait(step)

        monkeypatch.setattr(command._closing, "wait", after_it_began)
        assert command.run(self.call())
        eventually(lambda: trouble, "somebody lost patience")
        command.close()
        assert "did not end within 0.4 s" in trouble[0]
        started = pids.read_text().split()
        eventually(lambda: not any(is_alive(int(pid)) for pid in started), "both are gone")

    def test_holds_nobody_up_and_only_so_many_run(self) -> None:
        command = NotifyCommand(["sleep", "600"], lambda _: None)
        started = [command.run(self.call()) for _ in range(MOST_AT_ONCE + 2)]
        assert started == [True] * MOST_AT_ONCE + [False] * 2
        command.close()  # ends them, or this test would last
        assert not [one for one in threading.enumerate() if one.name == "mam-notify-command"]
        assert not command.run(self.call())

    @pytest.mark.parametrize(
        ("argv", "words"),
        [(["/no/such/program"], "no such file"), (["sh", "-c", "exit 3"], "ended with 3")],
    )
    def test_that_fails_is_said_to(self, argv: list[str], words: str) -> None:
        trouble: list[str] = []
        command = NotifyCommand(argv, trouble.append)
        command.run(self.call())
        eventually(lambda: trouble, "it is said")
        command.close()
        assert words in trouble[0]

    def test_no_value_can_break_an_environment(self) -> None:
        given = variables(self.call("\0\ud800" + "x" * 100_000), {})
        assert all(value.isprintable() and len(value) < 10_000 for value in given.values())
        assert all(value.encode() for value in given.values())


def test_the_settings_have_defaults_that_disturb_nobody() -> None:
    notify = load().notify
    assert (notify.command, notify.bell, notify.terminal) == (None, True, "auto")
    assert (Urgency(notify.min), notify.debounce_sec) == (Urgency.NORMAL, 10)
