"""A file of jobs, looked at before it is registered: all of it, or nothing.

The file is read on a thread, so that a hundred thousand lines hold nobody up; what is seen is
a bounded part of it, and what is registered is what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label

from mam_core.operations.bulk_preview import Preview
from mam_core.safe_text import one_line
from mam_tui.screens.dialog import Dialog
from mam_tui.screens.forms.boxes import BOXES
from mam_tui.screens.forms.bulk_lines import paragraphs, summary
from mam_tui.screens.forms.chooser import Chooser
from mam_tui.screens.forms.safe_boxes import SafeLine
from mam_tui.widgets.detail.page import Page

_NO_TEMPLATE = "none"


class Wanted(NamedTuple):
    """Which file, and what fills the keys that its lines leave out."""

    path: str
    template: str = ""


class BulkForm(Dialog[None]):
    """`look` reads the file and answers by `show` or `refuse`; `send` registers what was seen."""

    DEFAULT_CSS = """
    BulkForm { align: center middle; }
    BulkForm > Vertical {
        width: 100%; max-width: 140; height: 100%; padding: 0 1;
        background: $surface; border: round $primary;
    }
    BulkForm .title { text-style: bold; color: $text-primary; width: 1fr; }
    BulkForm Horizontal { height: 1; }
    BulkForm Horizontal Label { width: 10; color: $text-muted; }
    BulkForm Input { border: none; height: 1; padding: 0; width: 1fr; background: $panel; }
    BulkForm Input:focus { border: none; background: $primary 30%; }
    BulkForm Page { background: $surface; margin-top: 1; scrollbar-gutter: stable; }
    BulkForm .summary { text-style: bold; width: 1fr; height: auto; }
    BulkForm .said { color: $text-error; text-style: bold; height: auto; width: 1fr; }
    BulkForm .keys { color: $text-muted; width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "register", "register"),
        Binding("escape", "leave", "leave"),
        *BOXES,
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self,
        path: str,
        templates: Sequence[str],
        look: Callable[[BulkForm, Wanted], None],
        send: Callable[[BulkForm, Wanted, Preview], None],
    ) -> None:
        super().__init__()
        self._path = path
        self._templates = templates
        self._look = look
        self._send = send
        self._preview: Preview | None = None
        self._seen: Wanted | None = None  #: what the preview is of, or will be
        self._is_reading = False
        self._is_busy = False

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label("New jobs from a file", classes="title", markup=False)
            with Horizontal():
                yield Label("file", markup=False)
                hint = "JSON lines, as `mam register --bulk` takes them"
                yield SafeLine(self._path, placeholder=hint, id="path")
            if self._templates:
                with Horizontal():
                    yield Label("template", markup=False)
                    yield Chooser([_NO_TEMPLATE, *self._templates])
            yield Page()
            yield Label("", classes="summary", markup=False)
            yield Label("", classes="said", markup=False)
            keys = "enter look  ^s register all  tab next  esc leave"
            yield Label(keys, classes="keys", markup=False)

    def opened(self) -> None:
        self.query_one("#path", Input).focus()
        self.query_one(Page).say("enter reads the file; nothing is registered by that")
        if self._path:
            self.look()

    @property
    def wanted(self) -> Wanted:
        chooser = next(iter(self.query(Chooser)), None)
        template = chooser.name_chosen if chooser is not None and chooser.at else ""
        return Wanted(self.query_one("#path", Input).value.strip(), template)

    def wants(self, wanted: Wanted) -> bool:
        """For whoever reads: still this one, and not another or none."""
        return self._is_reading and self._seen == wanted and self.is_attached

    # -- reading ---------------------------------------------------------------------------------

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        if self._preview is not None and self._seen == self.wanted:
            self.query_one(Page).focus()
        else:
            self.look()

    @on(Input.Changed)
    @on(Chooser.Chosen)
    def _changed(self) -> None:
        if self._seen is not None and self._seen != self.wanted:
            self._forget()
            if self.query_one("#path", Input).has_focus is False:
                self.look()  # another template of the same file

    def _forget(self) -> None:
        self._preview = self._seen = None
        self._is_reading = False
        self.query_one(Page).clear()
        self.query_one(Page).say("enter reads the file")
        self._tell("", "")

    def look(self) -> None:
        wanted = self.wanted
        if not wanted.path:
            self._tell("", "which file?")
            return
        self._forget()
        self._seen = wanted
        self._is_reading = True
        self.query_one(Page).say("reading …")
        self._look(self, wanted)

    def progress(self, wanted: Wanted, lines: int) -> None:
        if self.wants(wanted):
            self.query_one(Page).say(f"reading … {lines:,} lines")

    def show(self, wanted: Wanted, preview: Preview) -> None:
        if not self.wants(wanted):
            return
        self._is_reading = False
        self._preview = preview
        self._lay_out()
        self._tell(summary(preview), "" if preview.bad else preview.trouble)

    def refuse(self, wanted: Wanted, sentence: str) -> None:
        """It could not be read, or not be registered."""
        self._is_busy = False
        if self._seen == wanted and self.is_attached:
            self._is_reading = False
            self.query_one(Page).say("")
            self._tell("" if self._preview is None else summary(self._preview), sentence)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        page = self.query_one(Page)
        if self._preview is not None:
            page.put(paragraphs(self._preview, page.scrollable_content_region.width))

    def _tell(self, summed: str, trouble: str) -> None:
        self.query_one(".summary", Label).update(summed)
        self.query_one(".said", Label).update(one_line(trouble))

    # -- registering -----------------------------------------------------------------------------

    def action_register(self) -> None:
        if self._is_busy or self._is_reading:
            return
        if self._preview is None or self._seen != self.wanted:
            self.look()  # nothing is registered that nobody has seen
        elif self._preview.trouble:
            self._tell(summary(self._preview), self._preview.trouble)
        else:
            self._is_busy = True
            self.registering(0)
            self._send(self, self.wanted, self._preview)

    def registering(self, percent: int) -> None:
        """So far it is; before the end none of them counts."""
        if self._is_busy and self.is_attached:
            self._tell(f"registering … {percent} %", "")

    def action_leave(self) -> None:
        self.dismiss()
