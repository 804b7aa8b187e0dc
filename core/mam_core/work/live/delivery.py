"""A text for an agent in a pane: pasted once, sent off by Enter, and seen to be taken.

Step by step, since the agent's echo reaches the screen only while the loop that
calls us passes bytes on. Real agents lose an Enter that comes too soon (5 of 8
starts), take a paste for an answer when a dialog is open, and join a second
paste to the first: so nothing is typed into a dialog, Enter waits for the echo and
is pressed again when nothing shows that it was taken, and the text never is.
An agent whose box is not known gets one Enter: nobody could say what a second answers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from mam_core.agents.screens import ScreenReading
from mam_core.agents.signs import AgentState, Sign
from mam_core.pace import paced
from mam_core.safe_text import clip, one_line
from mam_core.tmux.facts import Hand, TmuxFailed
from mam_core.work.live.turn import is_own_word

#: Between two looks at the screen on the way.
LOOK_SEC = 0.2
#: While it waits for longer, mostly for a person.
_SELDOM_SEC = 0.5
_SOON_SEC = 5.0
#: From the paste to the first Enter at least; one agent takes an Enter after 100 ms for a new line.
_SETTLE_SEC = 0.3
#: A paste that is not seen by then was taken by something else.
_ECHO_SEC = 10.0
#: From one Enter to the next, and how many there are.
CONFIRM_SEC = 2.0
ENTERS = 5
#: So begins the rule of the sign by which an agent says that it took a text, also at work.
_TAKEN = "UserPromptSubmit"


class Step(StrEnum):
    """How far it is. The words are those of a message's stages."""

    READY = "ready"  #: nothing was typed yet
    TYPED = "typed"
    SUBMITTED = "submitted"
    ACCEPTED = "accepted"
    UNSUBMITTED = "unsubmitted"  #: typed, and nothing shows that it was taken


class Obstacle(NamedTuple):
    """Why nothing is typed just now. The words are foreign."""

    dialog: str | None
    words: str


class Delivery:
    """Of one text."""

    def __init__(
        self,
        text: bytes,
        hand: Hand,
        read: Callable[[], ScreenReading],
        *,
        knows_boxes: bool,
        interrupts: bool = False,
    ) -> None:
        """`interrupts`: it may be typed while the agent works, as a person would."""
        self.step = Step.READY
        self.obstacle: Obstacle | None = None
        self.by = ""  #: what showed that it was taken
        self.enters = 0
        self._text = text
        self._hand = hand
        self._read = read
        self._knows_boxes = knows_boxes
        self._enters_at_most = ENTERS if knows_boxes else 1
        self._interrupts = interrupts
        self._look_at = 0.0
        self._seen_step: Step | None = None
        self._seen_at = 0.0
        self._since = 0.0
        self._before: str | None = None
        self._entered_at = 0.0
        self._was_busy = False  #: when Enter was pressed: that it works shows nothing then

    @property
    def is_over(self) -> bool:
        return self.step is Step.ACCEPTED

    @property
    def unsubmitted(self) -> str:
        """Why it was given up, in words; "" while it is not."""
        if self.step is not Step.UNSUBMITTED:
            return ""
        if not self._knows_boxes:
            return "nothing shows whether it was taken, as its screen and signs are not known here"
        if not self.enters:
            return "it did not show in the input box, so Enter was not pressed"
        return f"nothing was taken after {self.enters} times Enter"

    def standstill(self, now: float) -> str:
        """What it waits for by now, mostly a person; "" while it is on its way."""
        if self.obstacle is not None and now - self._seen_at >= _SOON_SEC:
            return self.obstacle.words
        return self.unsubmitted

    def next_look(self, now: float) -> float:
        return 3600.0 if self.is_over else max(0.0, self._look_at - now)

    def hear(self, sign: Sign) -> None:
        """The agent itself, after our Enter: it works, asks, or is through with it already."""
        if self.step not in (Step.SUBMITTED, Step.UNSUBMITTED) or not is_own_word(sign):
            return
        if self._was_busy and not sign.rule.startswith(_TAKEN):
            return
        if sign.turn_over or sign.state in (AgentState.WORKING, AgentState.WAITING):
            self._accept(f"{sign.channel}: {sign.rule}")

    def go_on(self, now: float, *, quiet_sec: float, is_working: bool) -> Step:
        """The next step if it is time; the step reached. `quiet_sec`: since the last output."""
        if self.is_over or now < self._look_at:
            return self.step
        if self.step is not self._seen_step:
            self._seen_step, self._seen_at = self.step, now
        self._look_at = now + paced(LOOK_SEC if now - self._seen_at < _SOON_SEC else _SELDOM_SEC)
        reading = self._read()
        if self.step is Step.READY:
            self._begin(reading, now, quiet_sec, is_working)
        elif self.step is Step.TYPED:
            self._submit(reading, now, is_working)
        else:
            self._confirm(reading, now, is_working)
        return self.step

    # -- the steps -------------------------------------------------------------------------

    def _begin(self, seen: ScreenReading, now: float, quiet_sec: float, is_working: bool) -> None:
        self.obstacle = self._in_the_way(seen, quiet_sec, is_working)
        if self.obstacle is not None:
            return
        self._before = seen.box
        with suppress(TmuxFailed):  # perhaps it was pasted all the same: the echo will tell
            self._hand.paste(self._text)
        self._since = now
        self.step = Step.TYPED

    def _in_the_way(
        self, seen: ScreenReading, quiet_sec: float, is_working: bool
    ) -> Obstacle | None:
        if seen.dialog is not None:
            return Obstacle(seen.dialog, seen.words or seen.dialog)
        if seen.choices:
            return Obstacle("menu", seen.words or "a list of choices is on the screen")
        if not self._interrupts and (is_working or seen.state is AgentState.WORKING):
            return Obstacle(None, "it still works on something else")
        if seen.box:
            return Obstacle(None, f"there is text in its input box: {clip(one_line(seen.box), 60)}")
        if seen.box is None and self._knows_boxes:
            return Obstacle(None, "its input box is not on the screen")
        if not self._knows_boxes and quiet_sec < CONFIRM_SEC:
            return Obstacle(None, "its screen is not at rest")
        return None

    def _submit(self, seen: ScreenReading, now: float, is_working: bool) -> None:
        if seen.dialog is not None:
            self.obstacle = Obstacle(seen.dialog, seen.words)
            return
        self.obstacle = None
        waited = now - self._since
        is_echoed = bool(seen.box) and seen.box != self._before
        if waited >= _SETTLE_SEC and (is_echoed or not self._knows_boxes):
            self._enter(seen, now, is_working)
        elif waited >= _ECHO_SEC:
            self.step = Step.UNSUBMITTED

    def _enter(self, seen: ScreenReading, now: float, is_working: bool) -> None:
        is_busy = is_working or seen.state is AgentState.WORKING
        self._was_busy = self._interrupts and is_busy
        with suppress(TmuxFailed):  # it is pressed again when nothing comes of it
            self._hand.press("Enter")
        self.enters += 1
        self._entered_at = now
        self.step = Step.SUBMITTED

    def _confirm(self, seen: ScreenReading, now: float, is_working: bool) -> None:
        """At last by the screen: the text is gone from the box, or the agent is seen at work."""
        if seen.dialog is not None or now - self._entered_at < CONFIRM_SEC:
            return
        went_to_work = seen.state is AgentState.WORKING and not self._was_busy
        if self.enters and (went_to_work or seen.box == ""):
            went_to_work = went_to_work and bool(seen.rule)
            self._accept(f"screen: {seen.rule if went_to_work else 'its input box is empty'}")
        elif self.step is Step.SUBMITTED:
            if self.enters < self._enters_at_most:
                self._enter(seen, now, is_working)
            else:
                self.step = Step.UNSUBMITTED

    def _accept(self, by: str) -> None:
        self.by = by
        self.step = Step.ACCEPTED
        self.obstacle = None
