"""The banner that cannot be missed: a line across the whole width, on every view, and a slider."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from mam_tui.travel.traveller import Traveller
from mam_tui.travel.wording import Slider, headline, progress, slider

#: With fewer lines the slider leaves its own to what is looked at.
_ROOM_FOR_A_SLIDER = 10


class Headline(Widget):
    """Where we are."""

    DEFAULT_CSS = """
    Headline { height: 1; background: $warning; color: auto 100%; text-style: bold; }
    Headline:ansi { background: ansi_yellow; color: ansi_black; }
    Headline:nocolor { text-style: bold reverse; }
    Headline.-reading { background: $panel; color: $text-primary; }
    Headline.-reading:nocolor { text-style: bold; }
    """

    words: reactive[str] = reactive("")

    def render(self) -> Text:
        return Text(self.words, no_wrap=True, overflow="crop", end="")


class Track(Widget):
    """Where that lies, and where much happened."""

    DEFAULT_CSS = """
    Track { height: 1; background: $panel; color: $text-warning; display: none; }
    Track.-on { display: block; }
    Track > .track--mark { background: $foreground; color: $background; text-style: bold; }
    Track:ansi > .track--mark { background: ansi_white; color: ansi_black; }
    Track:nocolor > .track--mark { text-style: bold reverse; }
    """
    COMPONENT_CLASSES = {"track--mark"}

    class Chosen(Message):
        """A place was clicked: so much of the past lies before it."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    place: reactive[Slider] = reactive(Slider("", "", "", 0, 1))

    def render(self) -> Text:
        before, mark, after, *_ = self.place
        text = Text(before, no_wrap=True, overflow="crop", end="")
        text.append(mark, self.get_component_rich_style("track--mark"))
        text.append(after)
        return text

    def on_click(self, event: events.Click) -> None:
        at = min(max(event.x - self.place.first, 0), self.place.cells - 1)
        self.post_message(self.Chosen(at / max(1, self.place.cells - 1)))


class Banner(Vertical):
    """Below the status bar while the past is read, and while it is looked at."""

    DEFAULT_CSS = """
    Banner { height: auto; }
    """

    def __init__(self, leave: str, clock: Callable[[], float], *, ascii_only: bool) -> None:
        """`leave` is the key that goes back to now."""
        super().__init__()
        self._leave = leave
        self._clock = clock
        self._ascii = ascii_only
        self._traveller: Traveller | None = None
        self._share = 0.0
        self._headline = Headline()
        self._track = Track()

    def compose(self) -> ComposeResult:
        yield self._headline
        yield self._track

    def read(self, share: float) -> None:
        """The logs are being read."""
        self._traveller, self._share = None, share
        self._settle()

    def show(self, traveller: Traveller) -> None:
        """We are in the past."""
        self._traveller = traveller
        self._settle()

    def on_resize(self, event: events.Resize) -> None:
        self._settle()

    def _settle(self) -> None:
        """Only what looks different is drawn: at the fastest that is ten times a second."""
        width, ascii_only, traveller = self.app.size.width, self._ascii, self._traveller
        has_room = self.app.size.height >= _ROOM_FOR_A_SLIDER
        self._headline.set_class(traveller is None, "-reading")
        self._track.set_class(traveller is not None and has_room, "-on")
        if traveller is None:
            words = progress(self._share, width, self._leave, ascii_only=ascii_only)
            self._headline.words = words
            return
        now = self._clock()
        self._headline.words = headline(traveller, now, width, self._leave, ascii_only=ascii_only)
        self._track.place = slider(traveller, width, ascii_only=ascii_only)
