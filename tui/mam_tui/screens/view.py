"""What every view has: the desk that it works at, the actions that it knows, and a way out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from mam_tui.actions import ACTIONS, UNBOUND, Action, Place, key_of, why_not
from mam_tui.commands import Command
from mam_tui.desk import Desk
from mam_tui.folding import Folded
from mam_tui.widgets.command_line import CommandLine

if TYPE_CHECKING:
    from mam_tui.app import Console
    from mam_tui.travel.picture import Picture
    from mam_tui.travel.step import Step


def bindings(places: Collection[Place], borrowed: Collection[str] = ()) -> list[BindingType]:
    """The keys of a view: of the actions of its places, and of those that it borrows by name."""
    return [
        Binding(
            action.key or UNBOUND,
            f"act('{action.name}')",
            action.words,
            id=action.name,
            show=False,
        )
        for action in ACTIONS.values()
        if action.place in places or action.name in borrowed
    ]


class View(Screen[None]):
    """One of the numbered views. What an action does here is a method `_do_<name>`."""

    DEFAULT_CSS = """
    View .empty {
        height: 1fr; content-align: center middle; text-align: center; color: $text-muted;
        display: none;
    }
    View.-empty .empty { display: block; }
    """

    NAME: ClassVar[str]  #: as in `mam_tui.views`
    PLACES: ClassVar[Collection[Place]] = (Place.EVERYWHERE,)

    def __init__(self, desk: Desk, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.desk = desk
        self._ascii = ascii_only
        self._focused_before: Widget | None = None  #: while the ``:`` line is typed in
        self._past_shown: tuple[Picture, float] | None = None  #: which past, and when; None: now

    def on_mount(self) -> None:
        """Every view has the ``:`` line, from its beginning: letters typed ahead must find it."""
        if not self.query(CommandLine):
            self.mount(CommandLine())

    @property
    def console(self) -> Console:
        return cast("Console", self.app)

    @property
    def job_at_hand(self) -> str:
        """The job under the cursor, to which an act of every view is done; empty: none."""
        return self.desk.board.cursor or ""

    @property
    def is_whole(self) -> bool:
        """Its parts are there. Before that nobody need tell it anything: it looks at everything
        when it opens. When the console is left they go one by one."""
        return self.app.is_running and self.is_mounted and self.is_attached

    @property
    def is_seen(self) -> bool:
        """Also False while it is being taken down, when parts of it are missing."""
        return self.app.is_running and self.is_active

    def take(self, folded: Folded) -> None:
        """A batch of changes, after the board's model has taken it; only while this is seen."""

    def travelled(self, step: Step | None) -> None:
        """Another moment is shown; None: the past was entered or left, and everything is another.

        Only while this is seen: whoever comes back to it gets what there is to know then.
        """

    def take_up(self, step: Step | None) -> None:
        """The desk's moment is the one that is shown from now on."""
        self._past_shown = self._of_the_desk
        self.travelled(step)

    @property
    def _of_the_desk(self) -> tuple[Picture, float] | None:
        past = self.desk.past
        return None if past is None else (past, past.at)

    def on_screen_resume(self) -> None:
        """It may have been away while the past was entered, left or gone about in."""
        self.console.came_up()
        shown, there = self._past_shown, self._of_the_desk
        if shown == there:
            return
        if shown is None or there is None or shown[0] is not there[0]:
            self.take_up(None)
        else:
            from mam_tui.travel.step import Step  # not before the first frame

            self.take_up(Step(has_moved=True))

    def settle(self) -> None:
        """Everything around the view says how it stands now."""

    def lacks(self, name: str) -> str | None:
        """Why an action cannot be done now; None when it can."""
        return why_not(ACTIONS[name], self.desk)

    def action_act(self, name: str) -> None:
        """An action by its name: from a key, the palette or the ``:`` line."""
        if name == "back" and self.console.put_away():
            return
        if (reason := self.lacks(name)) is not None:
            words = f"{ACTIONS[name].words}: {reason}"
            self.notify(words, severity="warning", markup=False)
            return
        handler: Callable[[], None] | None = getattr(self, f"_do_{name.replace('-', '_')}", None)
        if handler is not None:
            handler()
        else:
            self.console.act(name)

    def _do_command(self) -> None:
        self._focused_before = self.focused
        self.query_one(CommandLine).open()

    def on_command_line_left(self) -> None:
        self.set_focus(self._focused_before)

    def on_command_line_entered(self, event: CommandLine.Entered) -> None:
        self.obey(event.command)

    def obey(self, command: Command) -> None:
        """What was entered in the ``:`` line."""
        name = command.name
        here = {one.id for one in self.BINDINGS if isinstance(one, Binding)}
        if name in here and not command.word:
            self.action_act(name)
        else:
            self.console.everywhere.obey(command)

    def knows(self, action: Action) -> bool:
        """Whether it belongs here, now."""
        return action.place in self.PLACES or (
            action.place is Place.PAST and self.desk.past is not None
        )

    def keys(self) -> list[tuple[str, str]]:
        """What can be done now, the most wanted first, for the line of keys."""
        wanted = [one for one in ACTIONS.values() if one.weight and key_of(one, self.desk)]
        wanted.sort(key=lambda action: -action.weight)
        return [
            (key_of(action, self.desk), action.words)
            for action in wanted
            if self.knows(action) and self.lacks(action.name) is None
        ]

    def _do_back(self) -> None:
        self.dismiss()

    def _do_quit(self) -> None:
        """Only the board is the root."""
        self.dismiss()
