"""One line of the board in the past: of ten thousand that a jump changes, forty are seen.

So a row keeps where its job stood, which is a number and a reference, and makes of it what a
live row has when somebody looks: a line that is drawn, a filter that asks for words. The state
of a job that has ended, or that waits for no job and no start time, costs nothing.
"""

from __future__ import annotations

from mam_core.board.why import BlockReasons
from mam_core.operations.replay import Past, Stand, Then
from mam_core.operations.shown import Shown
from mam_core.records import Status
from mam_core.summaries import Summary
from mam_tui.faces import Face
from mam_tui.rows import NO_NEWS, STATUS_FACES, STATUS_WORDS, Live, Row


class RowThen(Row):
    """A row that belongs to a moment; `stood` moves it to another."""

    __slots__ = ("_live", "_past", "_shown", "_state", "_summary", "_word", "stand")

    def __init__(
        self, past: Past, reasons: BlockReasons, job_id: str, stand: Stand, word: int
    ) -> None:
        self.job_id = job_id
        self.key = None
        self.held = False
        self.reasons = reasons
        self.trouble = ""
        self._past = past
        self.stood(stand, word)

    def stood(self, stand: Stand, word: int) -> None:
        self.stand = stand
        self._word = word
        self._summary: Summary | None = None
        self._live: Live | None = None
        self._shown: Shown | None = None
        self._state = ""

    def judge(self, at: float) -> None:
        """Note whether it was blocked at that moment, as far as the log knows."""
        assert self.reasons is not None
        summary = self.summary if self.stand.may_be_held else None
        self.held = summary is not None and self.reasons.is_held(summary, at)
        self._state = ""

    @property
    def then(self) -> Then:
        """All that is known of that moment."""
        return Then(self.job_id, self.stand, self._past.word(self._word))

    @property
    def shown(self) -> Shown:
        """By the log alone no state is older or younger: the same at any time."""
        if self._shown is None:
            self._shown = self.then.shown(0.0)
        return self._shown

    # -- what a live row has, made when it is asked for ------------------------------------------

    @property
    def summary(self) -> Summary | None:
        if self._summary is None:
            self._summary = self.then.summary
        return self._summary

    @summary.setter
    def summary(self, told: Summary | None) -> None:
        self._summary = told

    @property
    def live(self) -> Live:
        if self._live is None:
            self._live = self._heard()
        return self._live

    @live.setter
    def live(self, live: Live) -> None:
        self._live = live

    def _heard(self) -> Live:
        """What a board of that moment had heard of it."""
        stand, word = self.stand, self._past.word(self._word)
        state = _UNKNOWN
        if stand.status is Status.RUNNING:
            shown = self.shown
            state = shown.state.word, shown.words[:400], shown.channel, shown.at or 0.0
        said = _UNHEARD
        if word is not None and word.heard.attempt == stand.attempt:  # an old attempt's is no news
            said = word.name[:40], word.words[:400], word.at
        tokens, cost, progress, memory = self.then.used
        live = Live(*state, *said, progress, tokens, cost)
        if memory is None:
            return live
        return live._replace(memory=memory.now, peak_memory=memory.peak)

    @property
    def word(self) -> str:
        if not self._state:
            stand = self.stand
            if self.held:
                self._state = "blocked"
            elif stand.status is not Status.RUNNING:
                self._state = STATUS_WORDS[stand.status]
            elif stand.cancel_requested_at is not None:
                self._state = "cancelling"
            else:
                self._state = self.shown.state.word
        return self._state

    @property
    def face(self) -> Face:
        if self.stand.status is not Status.RUNNING and not self.held:
            return STATUS_FACES[self.stand.status]
        return super().face

    @property
    def order(self) -> int:
        return self.stand.contract.order

    @property
    def is_live(self) -> bool:
        return self.stand.status.is_live

    @property
    def is_running(self) -> bool:
        return self.stand.status is Status.RUNNING


_UNKNOWN = NO_NEWS[:4]
_UNHEARD = NO_NEWS[4:7]
