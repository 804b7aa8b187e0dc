"""Screens of real agents, read by the rules in the package and by rules of a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam_core.agents.profiles import Mode, Profile
from mam_core.agents.screens import (
    BadScreenRules,
    Choice,
    Meaning,
    ScreenRules,
    keys_for,
    rules_for,
    rules_of,
)
from mam_core.agents.signs import AgentState, Channel
from mam_core.agents.streams import StreamFormat
from mam_core.bounded_pattern import LINE_CHARS, BadPattern, line_pattern
from tests.support.rows import each_row
from tests.support.screens import (
    AGENTS,
    EXPECTED,
    NOBODY,
    all_files,
    expected_states,
    our_rules,
    read_screen,
    screen,
    table,
)

RULE = "─" * 100


def test_every_recorded_screen_is_read_as_a_person_checked_it() -> None:
    """H3: the table is in tests/samples/expected/screens.txt."""
    assert table() == EXPECTED.read_text()
    assert len(expected_states()) == len(all_files())


def test_no_recorded_screen_is_unknown() -> None:
    assert AgentState.UNKNOWN not in expected_states().values()


class TestDialogs:
    def test_a_question_is_told_with_its_words_and_choices(self) -> None:
        reading = read_screen("claude", "permission.tmux.01-question")
        assert reading.words.startswith("Bash command · python3 -c 'print(6*7)'")
        assert reading.words.endswith("Do you want to proceed?")
        assert reading.rule == "claude-code@1: permission"
        assert [choice.words for choice in reading.choices][::2] == ["Yes", "No"]
        assert [choice.selected for choice in reading.choices] == [True, False, False]

    def test_a_bare_enter_would_refuse_the_key(self) -> None:
        """A first-start dialog: its default is no, and its words hide the key."""
        reading = read_screen("claude", "dialogs.tmux.02-key")
        assert reading.dialog == "api key"
        assert [choice.means for choice in reading.choices if choice.selected] == [Meaning.NO]
        assert "sk-ant" not in reading.words

    def test_the_list_of_an_answer_is_no_menu(self) -> None:
        lines = [
            "● I suggest:",
            "",
            "  1. Yes",
            "  2. No",
            "",
            "  Enter to confirm · Esc to cancel",
        ]
        assert our_rules("claude").read(lines).state is AgentState.UNKNOWN

    def test_a_menu_above_the_box_was_answered(self) -> None:
        old = screen("claude", "permission.tmux.01-question")
        new = screen("claude", "plain.tmux.02-done")
        reading = our_rules("claude").read([*old, *new])
        assert (reading.state, reading.dialog, reading.choices) == (AgentState.IDLE, None, ())

    def test_esc_to_interrupt_within_a_question_is_no_work(self) -> None:
        lines = screen("claude", "ask.tmux.01-question")
        at = next(at for at, line in enumerate(lines) if line.startswith("Enter to select"))
        lines.insert(at, "  esc to interrupt")
        assert our_rules("claude").read(lines).dialog == "question"

    def test_an_unknown_dialog_is_a_dialog_still(self) -> None:
        lines = [RULE, "  A new thing", "", "  ❯ 1. Go on", "    2. Leave", "", "  Esc to cancel"]
        reading = our_rules("claude").read(lines)
        assert (reading.state, reading.dialog) == (AgentState.WAITING, "other")
        assert reading.words == "A new thing"


class TestStaleText:
    def test_of_an_answer_that_quotes_the_working_line_does_not_count(self) -> None:
        lines = ["● It says: esc to interrupt", "✻ Cooked for 2s", RULE, "❯\xa0", RULE, "  ?"]
        assert our_rules("claude").read(lines).state is AgentState.IDLE

    def test_of_an_earlier_turn_makes_no_error(self) -> None:
        reading = read_screen("claude", "interrupt.tmux.02-next-turn")
        assert reading.rule.endswith("done")
        lines = screen("claude", "error400.tmux.01-error") + screen("claude", "plain.tmux.02-done")
        assert not our_rules("claude").read(lines).failed

    def test_of_codex_before_the_last_paragraph_does_not_count(self) -> None:
        lines = ["• Working (2s • esc to interrupt)", "", "• word00 word01", ""]
        lines += ["› Ask Codex to do anything", "", "  GPT-5.5 default · /workdir/src"]
        assert our_rules("codex").read(lines).state is AgentState.UNKNOWN
        assert our_rules("codex").read(lines, title="⠼ src").state is AgentState.WORKING


def test_codex_whose_answer_streams_is_unknown_and_not_idle() -> None:
    """The working line is gone and the placeholder is there: so it looks when a turn is over."""
    lines = ["› say hello", "", "• word00 word01 word02", "", "› Ask Codex to do anything", ""]
    lines += ["  GPT-5.5 default · /workdir/src", "  ? for shortcuts"]
    reading = our_rules("codex").read(lines)
    assert (reading.state, reading.box) == (AgentState.UNKNOWN, "")


class TestBox:
    def test_holds_what_was_typed_and_not_sent(self) -> None:
        assert read_screen("claude", "hang.tmux.03-after-ctrl-c").box == (
            "Please do this: scenario=hang now"
        )
        assert read_screen("codex", "burst-enter").box == (
            "mam-plain: typed in one burst and Enter in the same send"
        )
        assert (read_screen("gemini", "paste-multiline-50ms").box or "").split("\n") == [
            "mam-plain: one line pasted",
            "mam-plain: several lines",
            "second line",
            "third line",
        ]

    def test_with_a_hint_in_it_is_empty(self) -> None:
        assert read_screen("claude", "queue.tmux.01-queued").box == ""
        assert read_screen("opencode", "ready").box == ""

    def test_of_opencode_has_its_text_in_the_frame(self) -> None:
        lines = [" ┃", " ┃  first line", " ┃  second", " ┃", " ┃  Build · model", " ╹▀▀▀▀▀▀▀▀▀▀▀▀"]
        assert our_rules("opencode").read(lines).box == "first line\nsecond"

    def test_is_not_an_old_prompt(self) -> None:
        """History has a blank after the sign, the box of claude a no-break space."""
        lines = ["❯ Please do this", "", "● Working on it"]
        assert our_rules("claude").read(lines).box is None
        assert read_screen("gemini", "quotaplan").box is None


@each_row("folder", AGENTS)
@each_row(
    "lines",
    [
        [],
        [""] * 50,
        ["\x1b[31m\x00\u202e" * 50] * 200,
        ["❯" * 100_000] * 50,
        ["1. a"] * 300,
        [f"{n}. x" for n in range(300, 0, -1)],
    ],
)
def test_rubbish_is_unknown_and_costs_little(folder: str, lines: list[str]) -> None:
    """What repeats without end would not come back at all."""
    assert our_rules(folder).read(lines).state is AgentState.UNKNOWN


def test_a_sign_of_the_screen_never_ends_a_turn() -> None:
    sign = read_screen("claude", "error400.tmux.01-error").sign(7.0)
    assert (sign.channel, sign.at, sign.turn_over, sign.failed) == (
        Channel.SCREEN,
        7.0,
        False,
        True,
    )


class TestPatterns:
    @each_row(
        "text",
        [
            "(a+)+$",
            "(a|a)*$",
            "(a|ab){20}",
            ".*.*.*x",
            "a?" * 30 + "a" * 30,
            r"(x)\1",
            "(",
            "x" * 201,
        ],
    )
    def test_that_could_cost_too_much_are_refused(self, text: str) -> None:
        with pytest.raises(BadPattern):
            line_pattern(text)

    @each_row("text", ["[^a-z]*x.*y", r"\(\*+", "[]()*+?]+", "─{20}", "(?:a|b)?c"])
    def test_that_are_cheap_are_taken(self, text: str) -> None:
        assert line_pattern(text).pattern == text

    def test_come_back_at_their_worst(self) -> None:
        assert line_pattern(r"(?:a|b|a|b).*a.*c").match("a" * LINE_CHARS) is None


class TestAnswers:
    def test_are_found_by_meaning_number_and_words(self) -> None:
        choices = read_screen("codex", "permission-asked").choices
        assert keys_for(choices, "y") == ("y",)
        assert keys_for(choices, "NO") == ("Escape",)
        assert keys_for(choices, "always") == ("p",)
        assert keys_for(choices, "2") == ("p",)
        assert keys_for(choices, "no, and tell") == ("Escape",)

    def test_that_fit_none_or_two_press_nothing(self) -> None:
        choices = read_screen("claude", "ask.tmux.01-question").choices
        assert keys_for(choices, "yes") is None
        assert keys_for(choices, "blue") == ("2",)
        assert keys_for(choices, "9") is None
        assert keys_for(choices, " ") is None
        twins = [Choice("Red wine", ("1",)), Choice("Red ink", ("2",))]
        assert keys_for(twins, "red") is None

    def test_of_two_that_say_yes_none_is_the_yes(self) -> None:
        lines = [RULE, "Which?", "❯ 1. Yes, I like red", "  2. Yes, I like blue", "Esc to cancel"]
        choices = our_rules("claude").read(lines).choices
        assert [choice.means for choice in choices] == [Meaning.OTHER, Meaning.OTHER]

    def test_where_the_mark_is_moved_count_from_where_it_is(self) -> None:
        lines = ["  Trust this folder?", "  1. Trust and continue", "› 2. Quit", "  enter continue"]
        choices = our_rules("codex").read(lines).choices
        assert [choice.keys for choice in choices] == [("Up", "Enter"), ("Enter",)]


class TestUsersFile:
    def write(self, folder: Path, text: str, agent: str = "claude-code") -> dict[str, str]:
        path = folder / "mam" / "screens" / f"{agent}.toml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return {"XDG_CONFIG_HOME": str(folder)}

    def read(self, rules: ScreenRules) -> tuple[AgentState, str]:
        reading = rules.read(screen("claude", "slow.tmux.01-streaming"))
        return reading.state, reading.rule

    def test_replaces_a_rule_by_its_name_and_takes_one_away(self, tmp_path: Path) -> None:
        environ = self.write(
            tmp_path,
            'format = 1\nversion = "mine"\n'
            '[[rule]]\nname = "working"\nstate = "working"\npriority = 80\n'
            "if = [{ in = 'below', line = '.*never seen' }]\n"
            '[[rule]]\nname = "input box"\noff = true\n',
        )
        assert self.read(rules_for("claude-code", environ)) == (AgentState.UNKNOWN, "")
        done = rules_for("claude-code", environ).read(screen("claude", "plain.tmux.02-done"))
        assert done.rule == "claude-code@1+mine: done"

    def test_stands_alone_when_it_says_so(self, tmp_path: Path) -> None:
        environ = self.write(
            tmp_path,
            'format = 1\nversion = 7\nwhole = true\n[[rule]]\nname = "all"\nstate = "idle"\n'
            "if = [{ line = '.*esc to interrupt' }]\n",
        )
        assert self.read(rules_for("claude-code", environ)) == (
            AgentState.IDLE,
            "claude-code@7: all",
        )

    def test_gives_rules_to_an_agent_of_ones_own(self, tmp_path: Path) -> None:
        text = "format = 1\n[[rule]]\nname = 'p'\nstate = 'idle'\nif = [{ line = '%' }]\n"
        rules = rules_for("my-agent", self.write(tmp_path, text, "my-agent"))
        assert rules.read(["%"]).state is AgentState.IDLE

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("format = 2", "its format is 2"),
            ("rubbish", "cannot be read"),
            ("format = 1\ncolour = 3", "there is no key 'colour'"),
            ("format = 1\nrule = 3", "'rule' is a list of tables"),
            ("format = 1\n[[rule]]\nstate = 'idle'", "every [[rule]] has a name"),
            ("format = 1\n[[rule]]\nname = 'x'\nstate = 'idle'", "hold for every screen"),
            ("format = 1\n[[rule]]\nname = 'x'\nstate = 'busy'", "'busy' is none of starting"),
            (
                "format = 1\n[[rule]]\nname = 'x'\nstate = 'idle'\nif = [{ line = '(a+)+' }]",
                "rule 'x': '(a+)+' repeats a group",
            ),
            ("format = 1\n[box]\nline = '>'", "has a group (?P<text>…)"),
        ],
    )
    def test_that_cannot_be_meant_is_named_with_its_place(
        self, tmp_path: Path, text: str, words: str
    ) -> None:
        environ = self.write(tmp_path, text)
        with pytest.raises(BadScreenRules, match=r"claude-code\.toml") as refused:
            rules_for("claude-code", environ)
        assert words in refused.value.message


class TestByAnyName:
    """Rules go by the program, as channels do: its dialogs are the same by any name."""

    @each_row(
        ("folder", "name"),
        [
            ("claude", "dialogs.tmux.01-trust"),
            ("claude", "dialogs.tmux.02-key"),
            ("claude", "dialogs.tmux.03-bypass"),
            ("codex", "first-start-model-dialog"),
            ("codex", "trust-dialog"),
            ("codex", "warning-f2"),
            ("gemini", "trust-after"),
            ("opencode", "permission-asked"),
            ("aider", "first-start-release-notes"),
        ],
    )
    def test_a_first_dialog_of_a_renamed_profile_is_known(self, folder: str, name: str) -> None:
        profile = Profile("mine", (f"/opt/bin/{folder}", "--flag"), mode=Mode.INTERACTIVE)
        reading = rules_of(profile, NOBODY).read(screen(folder, name))
        assert reading == read_screen(folder, name)
        assert reading.dialog

    def test_a_wrapper_says_which_stream_it_would_speak(self) -> None:
        profile = Profile("mine", ("/opt/bin/wrapper",), stream=StreamFormat.GEMINI_DOCUMENT)
        assert rules_of(profile, NOBODY).read(screen("gemini", "trust-after")).dialog == "trust"
        unknown = Profile("claude-like", ("/opt/bin/wrapper",))
        assert not rules_of(unknown, NOBODY).rules

    def test_a_person_s_files_hold_by_program_and_then_by_name(self, tmp_path: Path) -> None:
        rule = '[[rule]]\nname = "{}"\nstate = "idle"\npriority = 99\nif = [{{ line = "{}" }}]\n'
        folder = tmp_path / "mam" / "screens"
        folder.mkdir(parents=True)
        (folder / "claude-code.toml").write_text("format = 1\n" + rule.format("theirs", "%"))
        environ = {"XDG_CONFIG_HOME": str(tmp_path)}
        profile = Profile("opus", ("claude", "--model", "opus"), mode=Mode.INTERACTIVE)
        assert rules_of(profile, environ).read(["%"]).rule == "claude-code@1+user: theirs"
        (folder / "opus.toml").write_text("format = 1\n" + rule.format("own", "&"))
        rules = rules_of(profile, environ)
        assert rules.read(["%"]).rule.endswith("theirs")
        assert rules.read(["&"]).rule.startswith("opus@")
        assert rules.read(screen("claude", "dialogs.tmux.01-trust")).dialog == "trust"
        (folder / "opus.toml").write_text("whole = true\nformat = 1\n" + rule.format("own", "&"))
        assert rules_of(profile, environ).read(["%"]).state is AgentState.UNKNOWN


def test_an_agent_without_rules_has_a_screen_that_says_nothing() -> None:
    for name in ("nobody", "../etc/passwd", ""):
        assert rules_for(name, NOBODY).read(["❯\xa0"]).state is AgentState.UNKNOWN
