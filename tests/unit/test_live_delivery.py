"""How a text gets into an agent's input box: typed once, whatever happens."""

from __future__ import annotations

import pytest

from mam_core.agents.screens import Choice, ScreenReading
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.errors import InvalidField
from mam_core.records import Job, Status
from mam_core.tmux.facts import Capture, TmuxFailed
from mam_core.work.live.delivery import ENTERS, Delivery, Step
from mam_core.work.live.instructions import line_for
from mam_core.work.live.paste_mode import PasteMode
from tests.support.rows import each_row

TEXT = b"Job x: read the file"


def reading(
    box: str | None, state: AgentState = AgentState.IDLE, dialog: str = ""
) -> ScreenReading:
    return ScreenReading(state, "rule", dialog, dialog or None, (), box)


class Pane:
    """A hand and the screen that it acts on; not a real one."""

    pane_id = "%0"

    def __init__(self) -> None:
        self.seen = reading("")
        self.did: list[str] = []
        self.fails = False

    def capture(self, *, colours: bool = False, lines_back: int = 0) -> Capture:
        raise AssertionError("it is read elsewhere")

    def paste(self, text: bytes) -> None:
        self.did.append("paste")
        self.seen = reading(text.decode())
        if self.fails:
            raise TmuxFailed("too slow")

    def press(self, key: str) -> None:
        self.did.append(key)

    def label(
        self, job_id: str | None = None, attempt: int | None = None, title: str | None = None
    ) -> None:
        raise AssertionError("not our business")

    def close(self) -> None:
        raise AssertionError("not our business")


class Story:
    def __init__(self, *, knows_boxes: bool = True, interrupts: bool = False) -> None:
        self.pane = Pane()
        self.delivery = Delivery(
            TEXT,
            self.pane,
            lambda: self.pane.seen,
            knows_boxes=knows_boxes,
            interrupts=interrupts,
        )
        self.now = 0.0

    def wait(self, seconds: float, *, quiet_sec: float = 9, is_working: bool = False) -> Step:
        until = self.now + seconds
        while self.now < until:
            self.now += 0.25
            self.delivery.go_on(self.now, quiet_sec=quiet_sec, is_working=is_working)
        return self.delivery.step

    def hear(self, state: AgentState, channel: Channel = Channel.HOOK) -> Step:
        self.delivery.hear(Sign(state, channel, "UserPromptSubmit", self.now))
        return self.delivery.step


class TestItsWay:
    def test_paste_echo_enter_and_the_agent_s_own_word(self) -> None:
        story = Story()
        assert story.wait(0.25) is Step.TYPED
        assert story.hear(AgentState.WORKING) is Step.TYPED, "a turn counts from our own Enter"
        assert story.wait(0.5) is Step.SUBMITTED
        assert story.hear(AgentState.WORKING, Channel.SCREEN) is Step.SUBMITTED
        assert story.hear(AgentState.WORKING) is Step.ACCEPTED
        assert story.delivery.by == "hook: UserPromptSubmit"
        assert story.pane.did == ["paste", "Enter"]

    def test_enter_again_and_never_the_text(self) -> None:
        story = Story()
        assert story.wait(60) is Step.UNSUBMITTED
        assert story.pane.did == ["paste", *["Enter"] * ENTERS]
        assert story.hear(AgentState.WORKING) is Step.ACCEPTED, "a person pressed it"

    def test_at_last_the_screen_is_believed(self) -> None:
        story = Story()
        story.wait(1)
        story.pane.seen = reading("")
        assert story.wait(0.5) is Step.SUBMITTED
        assert story.wait(2.5) is Step.ACCEPTED
        assert story.pane.did == ["paste", "Enter"]

    def test_a_paste_that_tmux_did_not_confirm_is_not_repeated(self) -> None:
        story = Story()
        story.pane.fails = True
        story.wait(1)
        assert story.pane.did == ["paste", "Enter"]

    def test_no_enter_without_an_echo(self) -> None:
        story = Story()
        story.wait(0.25)
        story.pane.seen = reading("")
        assert story.wait(20) is Step.UNSUBMITTED
        assert story.pane.did == ["paste"]


class TestWhatIsInTheWay:
    @each_row(
        ("seen", "words"),
        [
            (reading(None, AgentState.WAITING, "trust"), "trust"),
            (reading("half a sent"), "there is text in its input box: half a sent"),
            (reading(None), "its input box is not on the screen"),
            (reading("", AgentState.WORKING), "it still works on something else"),
            (reading(None)._replace(choices=(Choice("Yes", ("1",)),)), "a list of choices"),
        ],
    )
    def test_nothing_is_typed(self, seen: ScreenReading, words: str) -> None:
        story = Story()
        story.pane.seen = seen
        assert story.wait(5) is Step.READY
        assert story.delivery.obstacle is not None
        assert words in story.delivery.obstacle.words
        assert story.pane.did == []
        story.pane.seen = reading("")
        assert story.wait(0.5) is Step.TYPED

    def test_a_dialog_after_the_paste_gets_no_enter(self) -> None:
        story = Story()
        story.wait(0.25)
        story.pane.seen = reading(None, AgentState.WAITING, "permission")
        story.wait(20)
        assert story.pane.did == ["paste"]

    def test_an_unknown_agent_must_be_at_rest(self) -> None:
        story = Story(knows_boxes=False)
        story.pane.seen = reading(None, AgentState.UNKNOWN)
        assert story.wait(5, quiet_sec=0.1) is Step.READY
        assert story.wait(0.5, quiet_sec=5) is Step.TYPED

    def test_an_unknown_agent_gets_one_enter_and_then_a_person_is_told(self) -> None:
        """It may have taken the prompt; a second Enter would answer what it asks next."""
        story = Story(knows_boxes=False)
        story.pane.seen = reading(None, AgentState.UNKNOWN)
        story.wait(0.5)
        story.pane.seen = reading(None, AgentState.UNKNOWN)
        assert story.delivery.standstill(story.now) == ""
        assert story.wait(60) is Step.UNSUBMITTED
        assert story.pane.did == ["paste", "Enter"]
        assert "nothing shows whether it was taken" in story.delivery.standstill(story.now)

    def test_what_stands_in_the_way_for_long_is_a_standstill(self) -> None:
        story = Story()
        story.pane.seen = reading(None, AgentState.WAITING, "trust")
        story.wait(2)
        assert story.delivery.standstill(story.now) == ""
        story.wait(5)
        assert story.delivery.standstill(story.now) == "trust"

    def test_a_person_s_words_may_come_while_it_works(self) -> None:
        story = Story(interrupts=True)
        story.pane.seen = reading("", AgentState.WORKING)
        assert story.wait(0.25, is_working=True) is Step.TYPED

    def test_that_it_works_shows_nothing_when_it_did_so_before(self) -> None:
        story = Story(interrupts=True)
        story.pane.seen = reading("", AgentState.WORKING)
        story.wait(0.25, is_working=True)
        story.pane.seen = reading(TEXT.decode(), AgentState.WORKING)
        assert story.wait(0.5, is_working=True) is Step.SUBMITTED
        story.delivery.hear(Sign(AgentState.WORKING, Channel.HOOK, "PreToolUse", story.now))
        assert story.wait(5, is_working=True) is Step.SUBMITTED, "the text is still in its box"
        story.pane.seen = reading("", AgentState.WORKING)
        assert story.wait(2.5, is_working=True) is Step.ACCEPTED
        assert story.pane.did.count("paste") == 1

    def test_its_own_word_for_a_new_text_is_believed_also_at_work(self) -> None:
        story = Story(interrupts=True)
        story.pane.seen = reading("", AgentState.WORKING)
        assert story.wait(1, is_working=True) is Step.SUBMITTED
        assert story.hear(AgentState.WORKING) is Step.ACCEPTED


class TestPasteMode:
    """A terminal program says itself whether a paste is one thing, or keys."""

    @each_row(
        ("written", "is_bracketed"),
        [
            (b"words", False),
            (b"\x1b[?2004h", True),
            (b"\x1b[?1049;2004h and words", True),
            (b"\x1b[?2004h\x1b[?2004l", False),
            (b"\x1b[?2004h\x1bc", False),
            (b"\x1b[?12004h\x1b[2004h", False),
        ],
    )
    def test_is_heard_however_it_is_cut(self, written: bytes, is_bracketed: bool) -> None:
        for size in (1, 3, len(written)):
            mode = PasteMode()
            for at in range(0, len(written), size):
                mode.feed(written[at : at + size])
            assert mode.is_bracketed is is_bracketed


class TestTheLine:
    def test_it_names_file_job_and_commands(self) -> None:
        """H6: job id, registry and the exact commands; not a byte of the prompt."""
        job = Job(job_id="ab1", status=Status.RUNNING, prompt="SECRET", attempt=3)
        line = line_for(job, "/logs/a b/prompt", "/reg").decode()
        assert "read the file '/logs/a b/prompt'" in line
        publish = "mam publish --registry-dir /reg --job ab1 --attempt 3 --event completed"
        assert publish in line
        assert "SECRET" not in line
        assert "\n" not in line

    @pytest.mark.parametrize("path", ["/a\x1b[201~b", "/a\nb", "/a\x07b"])
    def test_a_path_that_would_be_keys_is_refused(self, path: str) -> None:
        job = Job(job_id="ab1", status=Status.RUNNING)
        with pytest.raises(InvalidField, match="control characters"):
            line_for(job, path, "/reg")
