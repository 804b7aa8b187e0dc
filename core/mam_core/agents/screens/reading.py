"""How a screen is read: the first rule whose conditions hold says what the agent is doing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mam_core.agents.screens.boxes import Seen, find_box
from mam_core.agents.screens.menus import Found, find_menu
from mam_core.agents.screens.rules import Choice, Condition, Pattern, Region, Rule, Rules
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.bounded_pattern import LINE_CHARS

#: What is looked at: an agent's own lines are at the bottom, however high the terminal is.
_LINES = 120
#: Of a question; a command that is to be allowed can be long.
_WORDS_CHARS = 400
#: Above a list of choices, where no line says where the question begins.
_QUESTION_LINES = 8
_CONTROLS = re.compile("\x1b\\[[0-9;:?]*[ -/]*[@-~]")
_BORDERS = " │┃╭╮╰╯─"


class ScreenReading(NamedTuple):
    """What a screen says. `words`, `box` and the choices are the agent's: foreign text."""

    state: AgentState
    rule: str  #: with the agent and the version of its rules; "" when none holds
    words: str  #: the question, the error, the line that was matched
    dialog: str | None  #: a name such as "trust", "api key", "permission"
    choices: tuple[Choice, ...]
    box: str | None  #: text in the input box, None when no box is seen
    failed: bool = False  #: an error is the last thing that the turn shows

    def sign(self, at: float) -> Sign:
        """As evidence. A turn is never over because of the screen alone."""
        return Sign(self.state, Channel.SCREEN, self.rule, at, self.words, failed=self.failed)


class _Screen(NamedTuple):
    """The lines, and what was found on them before any rule is asked."""

    lines: Sequence[str]
    title: str
    box: Seen | None
    menu: Found | None
    prompt: Pattern | None


class ScreenRules:
    """The rules of one agent, ready to read its screens."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    @property
    def agent(self) -> str:
        return self._rules.agent

    @property
    def version(self) -> str:
        return self._rules.version

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The most important first."""
        return self._rules.rules

    def read(self, lines: Sequence[str], title: str = "") -> ScreenReading:
        kept = [_plain(line) for line in lines]
        while kept and not kept[-1].strip():
            kept.pop()
        kept = kept[-_LINES:]
        box = find_box(self._rules.box, kept)
        # A list above the box is text of the conversation.
        menu = find_menu(self._rules.menu, kept) if box is None else None
        screen = _Screen(kept, _plain(title).strip(), box, menu, self._rules.prompt)
        for rule in self._rules.rules:
            if (matched := _holds(rule, screen)) is not None:
                return self._reading(rule, screen, matched)
        choices = menu.choices if menu else ()
        return ScreenReading(AgentState.UNKNOWN, "", "", None, choices, box and box.text)

    def _reading(self, rule: Rule, screen: _Screen, matched: str) -> ScreenReading:
        menu, box = screen.menu, screen.box
        words = _words(matched)
        if rule.dialog is not None:
            words = self._question(rule, screen, matched) or words
        return ScreenReading(
            rule.state,
            f"{self._rules.agent}@{self._rules.version}: {rule.name}",
            words[:_WORDS_CHARS],
            rule.dialog,
            rule.choices or (menu.choices if menu and rule.dialog is not None else ()),
            box and box.text,
            rule.failed,
        )

    def _question(self, rule: Rule, screen: _Screen, matched: str) -> str:
        """From the top of the dialog, or the line that was matched, to the first choice."""
        lines, menu = screen.lines, self._rules.menu
        begin = _last(lines, matched)
        if screen.menu is not None:
            end = screen.menu.at
        elif rule.choices and len(rule.conditions) > 1:
            end = _last(lines, _met(rule.conditions[-1], screen) or "")
        else:
            end = len(lines)
        if menu is not None and menu.top is not None:
            tops = (at for at in range(end - 1, -1, -1) if menu.top.match(lines[at]))
            begin = next(tops, begin)
        if not 0 <= begin < end:
            begin = max(0, end - _QUESTION_LINES)
        hide = menu.hide if menu is not None else None
        asked = [line for line in lines[begin:end] if hide is None or not hide.match(line)]
        return " · ".join(filter(None, map(_words, asked)))


def _holds(rule: Rule, screen: _Screen) -> str | None:
    """The line that met the first condition, "" for a rule without one; None when it does not."""
    if rule.box is not None and rule.box != (screen.box is not None):
        return None
    if rule.menu and screen.menu is None:
        return None
    if any(_met(condition, screen) is not None for condition in rule.unless):
        return None
    matched = [_met(condition, screen) for condition in rule.conditions]
    if None in matched:
        return None
    return matched[0] if matched else ""


def _met(condition: Condition, screen: _Screen) -> str | None:
    for line in reversed(_region(condition, screen)):
        if condition.line.match(line):
            return line
    return None


def _region(condition: Condition, screen: _Screen) -> Sequence[str]:
    lines, box = screen.lines, screen.box
    region = condition.region
    if region is Region.TITLE:
        return (screen.title,)
    if region is Region.BELOW:
        return _filled(lines[box.end :])[: condition.lines] if box is not None else ()
    until = len(lines) if region is Region.BOTTOM or box is None else box.first
    if region is Region.ABOVE and box is None:
        return ()
    if region is Region.PARAGRAPH:
        return _paragraph(lines[:until]) if box is not None else ()
    if region is Region.TURN and screen.prompt is not None:
        begin = next((at for at in range(until - 1, -1, -1) if screen.prompt.match(lines[at])), -1)
        return _filled(lines[begin + 1 : until])[-condition.lines :]
    return _filled(lines[:until])[-condition.lines :]


def _paragraph(lines: Sequence[str]) -> Sequence[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    begin = end
    while begin and lines[begin - 1].strip():
        begin -= 1
    return lines[begin:end]


def _filled(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _last(lines: Sequence[str], line: str) -> int:
    return next((at for at in range(len(lines) - 1, -1, -1) if lines[at] == line), -1)


def _words(line: str) -> str:
    return " ".join(line.strip(_BORDERS).split())


def _plain(line: str) -> str:
    if "\x1b" in line:
        line = _CONTROLS.sub("", line[: 8 * LINE_CHARS])
    return line[:LINE_CHARS].rstrip(" \r\n")
