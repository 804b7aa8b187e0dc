"""One field of a job's form: its label, what is typed, and what is wrong with it, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Label

from mam_core.operations.job_texts import YES, Field, Shape
from mam_core.safe_text import one_line, safe
from mam_tui.screens.forms.safe_boxes import SafeArea, SafeLine
from mam_tui.screens.forms.tick import Tick
from mam_tui.styles import ink


class Box(Widget):
    """`filled` is what the form put there: as long as it stands, nobody has changed it.

    It draws its label itself, and has a line for trouble only when there is some: a form has so
    many boxes that each widget less is seen when it opens.
    """

    DEFAULT_CSS = """
    Box { layout: vertical; height: auto; width: 1fr; }
    Box > * { margin-left: 14; width: 1fr; }
    Box > .box--label { color: $text-muted; }
    Box > .box--wrong { color: $text-error; text-style: bold; }
    Box > .trouble {
        width: 1fr; height: auto; margin-left: 0; padding-left: 14;
        color: $text-error; text-style: bold;
    }
    Box Input { border: none; height: 1; padding: 0; background: $panel; }
    Box Input:focus { border: none; background: $primary 30%; }
    Box TextArea { height: 3; border: none; padding: 0; background: $panel; }
    Box TextArea:focus { border: none; background: $primary 30%; }
    Box Checkbox { border: none; padding: 0; background: $surface; height: 1; }
    Box Checkbox:focus { border: none; }
    Box Checkbox > .toggle--button { color: $foreground; background: $panel; }
    Box Checkbox.-on > .toggle--button { color: $foreground; background: $panel; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"box--label", "box--wrong"}

    def __init__(self, field: Field, text: str, known: Sequence[str] = ()) -> None:
        super().__init__()
        self.field = field
        self.filled = text
        self._writing = self._made(field, text, [name for name in known if safe(name) == name])

    def _made(self, field: Field, text: str, known: Sequence[str]) -> SafeLine | SafeArea | Tick:
        if field.shape is Shape.FLAG:
            return Tick(field.example, bool(text.strip()), id=field.name)
        if field.shape is Shape.LINES:
            return SafeArea(text, id=field.name, placeholder=field.example)
        suggester = SuggestFromList(known, case_sensitive=False) if known else None
        return SafeLine(text, placeholder=field.example, id=field.name, suggester=suggester)

    def compose(self) -> ComposeResult:
        yield self._writing

    def render(self) -> Text:
        style = "box--wrong" if self.is_wrong else "box--label"
        return Text(self.field.label, ink(self, style), no_wrap=True, end="")

    @property
    def text(self) -> str:
        if isinstance(self._writing, Tick):
            return YES if self._writing.value else ""
        return self._writing.whole if isinstance(self._writing, SafeArea) else self._writing.value

    @property
    def is_changed(self) -> bool:
        return self.text.strip() != self.filled.strip()

    def fill(self, text: str) -> None:
        """By the form, not by the operator."""
        self.filled = text
        if isinstance(self._writing, Tick):
            self._writing.value = bool(text.strip())
        elif isinstance(self._writing, SafeArea):
            self._writing.put(text)
        else:
            self._writing.value = text

    @property
    def is_wrong(self) -> bool:
        return bool(self.query(".trouble"))

    def complain(self, sentence: str) -> None:
        """Below what was typed; an empty sentence takes it back."""
        said = next(iter(self.query(".trouble").results(Label)), None)
        if said is None and sentence:
            self.mount(Label(one_line(sentence), classes="trouble", markup=False))
        elif said is not None and sentence:
            said.update(one_line(sentence))
        elif said is not None:
            said.remove()
        self.refresh()

    def go_in(self) -> None:
        self._writing.focus()


class PromptBox(Box):
    """What matters has the room, and a frame with its name."""

    DEFAULT_CSS = """
    PromptBox { height: 1fr; min-height: 4; }
    PromptBox > * { margin-left: 0; }
    PromptBox > .trouble { padding-left: 0; }
    PromptBox TextArea {
        height: 1fr; padding: 0; border: round $foreground 40%; background: $surface;
    }
    PromptBox TextArea:focus { border: round $primary; background: $surface; }
    PromptBox .note { width: 1fr; color: $text-muted; display: none; }
    PromptBox.-long .note { display: block; }
    """

    def _made(self, field: Field, text: str, known: Sequence[str]) -> SafeArea:
        return SafeArea(text, id=field.name, placeholder=field.example)

    @property
    def area(self) -> SafeArea:
        return self.query_one(SafeArea)

    def compose(self) -> ComposeResult:
        yield self._writing
        yield Label("", classes="note", markup=False)

    def render(self) -> Text:
        return Text("", end="")

    def on_mount(self) -> None:
        self.area.border_title = self.field.label
        self.note_length()

    def on_text_area_changed(self) -> None:
        self.note_length()

    def note_length(self) -> None:
        """Of a prompt that the box cannot hold only the beginning is seen."""
        kept = self.area.kept
        self.set_class(kept is not None, "-long")
        words = f"the beginning of {len(kept or ''):,} characters: ^e writes them in $EDITOR"
        self.query_one(".note", Label).update(words)
