"""The console: wires the desk, the bridge and the screens together, and does nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import Screen

from mam_core.operations.preferences import Preferences
from mam_tui import garbage
from mam_tui.actions.past import PAST
from mam_tui.attention.noticing import Noticing
from mam_tui.bridge import Bridge
from mam_tui.careful_app import CarefulApp
from mam_tui.choices import Choices
from mam_tui.columns import COLUMNS
from mam_tui.desk import Deed, Desk
from mam_tui.errands import later
from mam_tui.everywhere import Everywhere
from mam_tui.folding import Folded
from mam_tui.hints import first_hint
from mam_tui.inflow import Inflow
from mam_tui.link import Link
from mam_tui.model import Order
from mam_tui.own_settings import check
from mam_tui.palette import in_our_order, palette
from mam_tui.plain import usual_theme
from mam_tui.screens.board import BoardScreen
from mam_tui.settings_watch import SettingsWatch
from mam_tui.status_line import Standing
from mam_tui.strange_keys import what_of
from mam_tui.views import VIEWS, Views

if TYPE_CHECKING:
    from mam_tui.complaints import Complaints
    from mam_tui.screens.job_acts import JobActs
    from mam_tui.screens.session_acts import SessionActs
    from mam_tui.screens.talk import Talk
    from mam_tui.travel.banner import Track
    from mam_tui.travel.travel import Travel


class Console(CarefulApp):
    """One operator, one registry."""

    TITLE = "mam"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {in_our_order}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "suspend", id="suspend", show=False),
        *(
            Binding(
                kind.key, f"view('{kind.name}')", kind.words, id=f"view-{kind.name}", show=False
            )
            for kind in VIEWS.values()
        ),
        *(
            Binding(
                action.key,
                f"travel('{action.name}')",
                action.words,
                id=action.name,
                show=False,
                priority=True,
            )
            for action in PAST
        ),
    ]

    def __init__(
        self,
        desk: Desk,
        *,
        ascii_only: bool = False,
        view: str | None = None,
        kept: Preferences | None = None,
        bridge: Callable[[Callable[[], None]], Bridge] | None = None,
    ) -> None:
        """`kept` are the choices of the last time; None: none are taken over, none are kept."""
        super().__init__(ascii_only=ascii_only)
        self.desk = desk
        self.choices = Choices(self, kept)
        self._view = view
        make = bridge or partial(
            Bridge,
            desk.registry_path,
            desk.config.copy(),  # which its duties renew by themselves
            config_path=desk.config_path,
            allow_network=desk.allow_network,
            read_only=desk.read_only,
            panes=desk.panes,
            hosts=desk.hosts,
        )
        self.inflow = Inflow(self, self._show)
        self.bridge = make(self.inflow.ring)
        self.everywhere = Everywhere(self)
        self.views = Views(self)
        self.link = Link(desk.clock)
        self.noticing = Noticing(self)
        self.settings = SettingsWatch(self)
        self.set_keymap(dict(desk.keys))

    def on_mount(self) -> None:
        self.inflow.open(self.bridge)
        self.noticing.open()
        kept = self.choices.now
        if kept.sort in COLUMNS:
            self.desk.board.order = Order(kept.sort, kept.reverse)
        colours = None if self.is_headless else self.console.color_system
        usual = usual_theme(colours, self.available_themes)
        self.choose_theme(self.desk.config.console.theme or kept.theme or usual)
        self.watch(self, "theme", lambda name: self.choices.change(theme=name), init=False)
        columns = kept.columns or self.desk.config.console.columns or ()
        self.board = BoardScreen(
            self.desk, ascii_only=self.ascii_only, columns=columns, panel=kept.panel, tab=kept.tab
        )
        self.push_screen(self.board)
        if self._view is not None:
            self.action_view(self._view)
        if self.choices.is_first_run:
            self.notify(first_hint(self.desk), title="Welcome", timeout=12, markup=False)
            self.choices.change(hint_seen=True)
        self.board.call_after_refresh(self._first_frame_is_there)
        self.set_interval(1.0, self._tick)

    def _first_frame_is_there(self) -> None:
        """Now what would have held it up."""
        garbage.set_aside()
        self.bridge.start()
        self.settings.open()

    async def on_unmount(self) -> None:
        self.settings.close()
        self.noticing.close()
        self.bridge.close()
        if self._has_travelled:
            self.travel.close()
        self.desk.close()

    def action_suspend_process(self) -> None:
        """Returns when the shell continues us; a stopped process must not hold the relay's lock."""
        with self.bridge.resting():
            super().action_suspend_process()

    # -- views ---------------------------------------------------------------------------------

    def action_view(self, name: str) -> None:
        self.everywhere.view(name)

    def settle(self) -> None:
        """Whatever is seen says how the console stands now."""
        self.board.settle()
        if (view := self.views.current) is not None and view.is_whole:
            view.settle()

    def choose_theme(self, name: str | None) -> bool:
        if not name:
            return True
        if name not in self.available_themes:
            return False
        self.theme = name
        return True

    def go_by_settings(self, changed: Collection[str]) -> None:
        """Those of ``mam.toml`` that were taken to pieces at the start; all others are asked for
        when they are needed."""
        self.desk.keys = check(self.desk.config)
        self.set_keymap(dict(self.desk.keys))
        self.noticing.go_by_settings()
        said = self.desk.config.console
        if "console.theme" in changed:
            self.choose_theme(said.theme)
        if "console.columns" in changed:
            self.board.table.choose_columns(said.columns or ())
        self.settle()

    # -- what arrives --------------------------------------------------------------------------

    def _show(self, folded: Folded) -> None:
        self.link.take(folded)
        self.link.look(self.bridge.state)
        self.board.take(folded)
        if folded.loaded is not None:
            garbage.set_aside()
        if folded.removal:
            self.complain(folded.removal)
        if (view := self.views.seen) is not None:
            view.take(folded)
        self.noticing.changed()

    def _tick(self) -> None:
        if not self.is_running:
            return
        if self.desk.past is None:  # time stands still there, unless it is played
            if self.board.is_current and self.board.table.shows_running:
                self.board.table.tick()
            self.board.wake()
            for folded in (self.desk.needing.grow_older(), self.desk.needing.look()):
                if folded is not None:
                    self.board.needs_changed(folded)
        self.noticing.changed()
        if self.link.look(self.bridge.state) or self.link.lost_at is not None:
            self.settle()

    def standing(self) -> Standing:
        board, is_now = self.desk.board, self.desk.past is None
        return Standing(
            "board",
            {word: number for word, number in board.counts.items() if number},
            len(board),
            len(board.rows),
            len(board.marks),
            board.filter.text,
            self.link.trouble,
            self.link.stale_sec if is_now else None,
            self.inflow.held if is_now else None,
            self.desk.read_only,
            self.link.is_loading and is_now,
            self.link.lost_at,
            self.link.broker,
            self.link.broker_lost_at,
            self.desk.needing.counts if is_now else {},
            self.link.well if is_now else "",
            self.link.public if is_now else (),
            self.link.broker_where,
        )

    # -- what is asked -------------------------------------------------------------------------
    # With its forms, at the first act: none of them costs the first frame anything.

    @cached_property
    def jobs(self) -> JobActs:
        from mam_tui.screens.job_acts import JobActs

        return JobActs(self, self._acted)

    @cached_property
    def talk(self) -> Talk:
        from mam_tui.screens.talk import Talk

        return Talk(self)

    @cached_property
    def session_acts(self) -> SessionActs:
        from mam_tui.screens.session_acts import SessionActs

        return SessionActs(self)

    @cached_property
    def travel(self) -> Travel:
        from mam_tui.travel.travel import Travel

        return Travel(self)

    @cached_property
    def complaints(self) -> Complaints:
        from mam_tui.complaints import Complaints

        return Complaints(self)

    @property
    def _has_complained(self) -> bool:
        return "complaints" in self.__dict__

    def put_away(self) -> bool:
        """What went wrong and was read; True: there was something."""
        return self._has_complained and self.complaints.put_away()

    @property
    def _has_travelled(self) -> bool:
        return "travel" in self.__dict__

    @property
    def is_reading_past(self) -> bool:
        return self._has_travelled and self.travel.is_reading

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the past are heard before all others, and only there."""
        if action == "travel":
            return self._has_travelled and self.travel.hears(str(parameters[0]))
        return super().check_action(action, parameters)

    def action_travel(self, name: str) -> None:
        self.travel.do(name)

    def came_up(self) -> None:
        """A screen did: if we are in the past, or something went wrong, it says so, too."""
        if self._has_travelled:
            self.travel.settle()
        if self._has_complained:
            self.complaints.settle()

    def on_track_chosen(self, event: Track.Chosen) -> None:
        self.travel.chose(event.share)

    def on_key(self, event: Key) -> None:
        """One that comes up to here was meant for nothing that is typed in."""
        words = what_of(event, self.screen, self.desk)
        if words is not None and words not in (note.message for note in self._notifications):
            self.notify(words, severity="warning", timeout=3, markup=False)

    def act(self, name: str) -> None:
        """An action that belongs to no screen."""
        self.everywhere.do(name)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: everything that can be done here; of Textual's own only the themes."""
        return palette(self, screen)

    def _acted(self) -> None:
        self.board.acted()

    def complain(self, words: str) -> None:
        """On any thread."""
        later(self, lambda: self.complaints.say(words))

    def tell(self, deed: Deed) -> None:
        """How a deed went, with the command that does the same."""
        self.notify(deed.told(), severity="information" if deed.ok else "error", markup=False)
