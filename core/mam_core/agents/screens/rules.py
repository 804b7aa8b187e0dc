"""The rules of one agent's screen, as they stand in its file once they are checked."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from mam_core.agents.signs import AgentState

Pattern = re.Pattern[str]


class Region(StrEnum):
    """Where on the screen a line must stand. Blank lines do not count in any of them."""

    BOTTOM = "bottom"  #: the last lines
    ABOVE = "above"  #: the last lines above the input box
    PARAGRAPH = "paragraph"  #: the lines right above the box, up to a blank one
    BELOW = "below"  #: what stands under the box
    TURN = "turn"  #: what came after the last prompt, up to the box
    TITLE = "title"


class Meaning(StrEnum):
    """What choosing it says to the agent."""

    YES = "yes"
    NO = "no"
    ALWAYS = "always"  #: yes, and do not ask again: more than a plain yes
    OTHER = "other"


class Choice(NamedTuple):
    """One answer that a dialog offers. `words` are the agent's: foreign text."""

    words: str
    keys: tuple[str, ...]  #: what is pressed for it, one after the other, by tmux's names
    means: Meaning = Meaning.OTHER
    number: str = ""  #: as it is shown; "" where there is none
    selected: bool = False  #: a bare Enter would take it


class Condition(NamedTuple):
    """A line of a region matches."""

    region: Region
    line: Pattern
    lines: int  #: so many of the region are looked at


class Rule(NamedTuple):
    """What is concluded when all conditions hold."""

    name: str
    state: AgentState
    priority: int
    conditions: tuple[Condition, ...]
    unless: tuple[Condition, ...] = ()
    box: bool | None = None  #: whether an input box must, or must not, be there
    menu: bool = False  #: a list of choices must be there, one of them selected
    dialog: str | None = None
    choices: tuple[Choice, ...] = ()  #: those of a dialog that does not number them
    failed: bool = False


class Shape(StrEnum):
    """How an input box is drawn."""

    LINE = "line"  #: a prompt sign, the text behind it and in the lines after it
    FRAME = "frame"  #: lines with a bar at their left, closed by a foot


class Box(NamedTuple):
    """How the input box is found, and where the text in it stands (group ``text``)."""

    shape: Shape
    line: Pattern
    more: Pattern | None = None  #: the further lines of the text
    above: Pattern | None = None  #: what stands right over it
    below: Pattern | None = None  #: what stands right under it; in a frame, its foot
    last: bool = False  #: nothing follows it
    empty: tuple[Pattern, ...] = ()  #: words that are shown in it when it holds none


class Menu(NamedTuple):
    """How a list of choices looks: groups ``mark``, ``number`` and ``words``."""

    line: Pattern
    by_number: bool  #: the number alone chooses; else the mark is moved and Enter pressed
    hint: Pattern | None = None  #: a key behind the words (group ``key``)
    top: Pattern | None = None  #: the line over a dialog, where its question begins
    yes: Pattern | None = None
    no: Pattern | None = None
    always: Pattern | None = None
    hide: Pattern | None = None  #: a line of the question that is not told: part of a secret


class Rules(NamedTuple):
    """All that is known about one agent's screen."""

    agent: str
    version: str
    rules: tuple[Rule, ...] = ()  #: the most important first
    box: Box | None = None
    menu: Menu | None = None
    prompt: Pattern | None = None  #: a prompt of the past: where the turn begins
