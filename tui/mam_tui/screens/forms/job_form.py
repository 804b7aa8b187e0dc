"""The form of a job: a new one, or a pending one to be changed.

The prompt has the room, since it is what matters; everything else is a short
line. What was used last stands there the next time, but for the prompt. The form
stays until the job is registered: a refusal stands at the box that it is about, and
nothing that was typed is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from textual import events, on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Checkbox, Input, Label, TextArea

from mam_core.errors import MamError
from mam_core.operations.filled_form import box_of, lacking, misread
from mam_core.operations.job_texts import FIELDS
from mam_core.safe_text import one_line
from mam_tui.screens.dialog import Dialog
from mam_tui.screens.forms.boxes import BOXES
from mam_tui.screens.forms.chooser import Chooser
from mam_tui.screens.forms.field_box import Box, PromptBox

Texts = dict[str, str]

_NO_TEMPLATE = "none"
#: With less height the prompt has no frame.
_SHORT = 30


class Suggested(NamedTuple):
    """What may stand in the boxes, and what stands there if nobody says."""

    agents: Sequence[str] = ()
    sessions: Sequence[str] = ()
    templates: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    defaults: Mapping[str, object] = MappingProxyType({})  #: of the settings, by the record's key


_NOTHING = Suggested()


class JobForm(Dialog[None]):
    """Hands what the boxes hold to `send`, which answers by `refuse` or by dismissing it."""

    DEFAULT_CSS = """
    JobForm { align: center middle; }
    JobForm > Vertical {
        width: 100%; max-width: 110; height: 100%; max-height: 46; padding: 0 1;
        background: $surface; border: round $primary;
    }
    JobForm .title { text-style: bold; color: $text-primary; width: 1fr; }
    JobForm .template { height: 1; }
    JobForm .template Label { width: 14; color: $text-muted; }
    JobForm VerticalScroll { height: 2fr; scrollbar-size-vertical: 1; }
    JobForm.-short PromptBox TextArea { border: none; background: $panel; }
    JobForm.-short PromptBox TextArea:focus { border: none; background: $panel; }
    JobForm .said { color: $text-error; text-style: bold; height: auto; width: 1fr; }
    JobForm .keys { color: $text-muted; width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # Not with priority: it would overtake letters that their box has not taken yet.
        Binding("ctrl+s", "save", "save"),
        Binding("ctrl+e", "editor", "editor", priority=True),
        Binding("escape", "leave", "leave"),
        *BOXES,
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self,
        title: str,
        texts: Mapping[str, str],
        send: Callable[[JobForm, Texts], None],
        *,
        suggested: Suggested = _NOTHING,
        fixed: Sequence[str] = (),
    ) -> None:
        """`fixed` are boxes that cannot be changed any more, and are left out."""
        super().__init__()
        self._title = title
        self._texts = dict(texts)
        self._send = send
        self._suggested = suggested
        self._fields = [field for field in FIELDS if field.name not in fixed]
        self._is_busy = False
        self._leaves = False  #: it was said that what was typed would be lost

    def compose(self) -> ComposeResult:
        known = {"agent": self._suggested.agents, "agent_session": self._suggested.sessions}
        prompt, *others = self._fields
        self._fit()  # before there is anything whose style would have to be found again
        with Vertical():
            yield Label(one_line(self._title), classes="title", markup=False)
            if self._suggested.templates:
                with Horizontal(classes="template"):
                    yield Label("template", markup=False)
                    yield Chooser([_NO_TEMPLATE, *self._suggested.templates])
            yield PromptBox(prompt, self._texts.get(prompt.name, ""))
            with VerticalScroll(can_focus=False):  # tab goes from box to box
                for field in others:
                    text = self._texts.get(field.name, "")
                    yield Box(field, text, known.get(field.name, ()))
            yield Label("", classes="said", markup=False)
            yield Label(
                "^s save  ^e prompt in $EDITOR  tab next  esc leave", classes="keys", markup=False
            )

    def opened(self) -> None:
        self.query_one(PromptBox).go_in()

    def on_resize(self, event: events.Resize) -> None:
        self._fit()

    def _fit(self) -> None:
        self.set_class(self.app.size.height < _SHORT, "-short")

    def boxes(self) -> list[Box]:
        return list(self.query(Box))

    def texts(self) -> Texts:
        """What the boxes hold now."""
        return {**self._texts, **{box.field.name: box.text for box in self.boxes()}}

    # -- what fills it ---------------------------------------------------------------------------

    def on_chooser_chosen(self, event: Chooser.Chosen) -> None:
        """Boxes that the operator has written in stay as they are."""
        template = self._suggested.templates.get(event.name, {})
        for box in self.boxes():
            name = box.field.name
            if not box.is_changed:
                box.fill(template.get(name) or self._texts.get(name, ""))

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(Checkbox.Changed)
    def _written(self) -> None:
        self._leaves = False

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        self.focus_next()

    def action_editor(self) -> None:
        """After the letters that were typed before: this key has priority."""
        self.query_one(PromptBox).area.call_later(self._edit)

    def _edit(self) -> None:
        """The prompt in the operator's own editor; the console makes room for it."""
        area = self.query_one(PromptBox).area
        try:
            with self.app.suspend():
                text, trouble = _edited(area.whole)
        except SuspendNotSupported:
            self.say("this terminal cannot be given to an editor")
            return
        self.say(trouble)
        if text is not None:
            area.put(text)

    # -- what becomes of it ----------------------------------------------------------------------

    def action_save(self) -> None:
        if self._is_busy:
            return  # one registration for one form, however often the key is pressed
        texts = self.texts()
        wrong = misread(texts)
        wrong |= dict.fromkeys(lacking(texts, self._suggested.defaults), "it must not stay empty")
        if wrong:
            self._complain(wrong)
            return
        self._complain({})
        self._is_busy = True
        self._send(self, texts)

    def refuse(self, sentence: str) -> None:
        """It did not work; the sentence stands at its box, where it is about one."""
        self._is_busy = False
        name, words = box_of(sentence)
        if any(box.field.name == name for box in self.boxes()):
            self._complain({name: words})
        else:
            self.say(sentence)

    def _complain(self, wrong: Mapping[str, str]) -> None:
        """At each box, with the cursor in the first."""
        self.say("")
        for box in self.boxes():
            box.complain(wrong.get(box.field.name, ""))
        bad = [box for box in self.boxes() if box.field.name in wrong]
        if bad:
            bad[0].go_in()
            where = ", ".join(box.field.label for box in bad)
            self.say(f"not yet: look at {where}")

    def say(self, sentence: str) -> None:
        self.query_one(".said", Label).update(one_line(sentence))

    def action_leave(self) -> None:
        if self._leaves or not any(box.is_changed for box in self.boxes()):
            self.dismiss()
        else:
            self._leaves = True
            self.say("esc again leaves, and what you wrote here is lost")


def _edited(text: str) -> tuple[str | None, str]:
    """What the editor left, and what went wrong: nothing is raised while the console is away,
    or it would not come back."""
    from mam_core.operations.editor import edited

    try:
        return edited(text), ""
    except (MamError, OSError) as problem:
        return None, str(problem)
