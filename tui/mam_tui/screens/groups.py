"""The groups: how many of each may run at once, what runs and waits, and the last decision."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from mam_core.operations.groups import Group, set_slots
from mam_core.registry import Registry
from mam_core.safe_text import one_line
from mam_tui.actions import ACTIONS, Place, refusal
from mam_tui.desk import Deed, Desk
from mam_tui.errands import run
from mam_tui.filters import parse
from mam_tui.groups.columns import decision_words, figure_words
from mam_tui.groups.watch import GroupLook, GroupWatch
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.view import View, bindings
from mam_tui.widgets.group_table import GroupTable
from mam_tui.widgets.key_bar import KeyBar
from mam_tui.widgets.status_bar import StatusBar

#: They would be done to a job that nobody sees.
_ON_A_JOB = ("attach", "say", "answer")
_TO_A_GROUP = ("more-slots", "fewer-slots", "usual-slots", "jobs-of-group")
_NOBODY = (
    "there are no groups\n\nmam register --group NAME puts a job into one,\n"
    "[groups.NAME] slots in mam.toml bounds it"
)


class GroupsScreen(View):
    """Table, who scales them, keys."""

    DEFAULT_CSS = """
    GroupsScreen.-empty GroupTable { display: none; }
    GroupsScreen .sign { height: 1; background: $surface; color: $text-muted; }
    """
    NAME = "groups"
    PLACES = (Place.GROUPS, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES)

    class Looked(Message):
        """From the looking thread."""

        def __init__(self, look: GroupLook) -> None:
            super().__init__()
            self.look = look

    def __init__(self, desk: Desk, *, ascii_only: bool = False) -> None:
        super().__init__(desk, ascii_only=ascii_only)
        self._seen: GroupLook | None = None
        self._watch = GroupWatch(desk, self._deliver)
        self._clock: Timer | None = None
        self.add_class("-empty", update=False)

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        yield GroupTable(ascii_only=self._ascii, clock=self.desk.clock)
        yield Static("reading the registry …", classes="empty", markup=False)
        yield Static(classes="sign", markup=False)
        yield KeyBar()

    @property
    def table(self) -> GroupTable:
        return self.query_one(GroupTable)

    # -- while it is seen ----------------------------------------------------------------------

    def on_mount(self) -> None:
        self._clock = self.set_interval(1.0, self._tick, pause=True)
        self.table.focus()

    def on_screen_resume(self) -> None:
        if self._clock is not None:
            self._clock.resume()
        self._watch.rounds.watch()
        self.settle()

    def on_screen_suspend(self) -> None:
        if self._clock is not None:
            self._clock.pause()
        self._watch.rounds.rest()

    def on_unmount(self) -> None:
        self._watch.rounds.close()

    def on_resize(self, event: events.Resize) -> None:
        self.settle()

    def _tick(self) -> None:
        if self.is_seen and self.table.shows_clock:
            self.table.refresh()

    def _deliver(self, look: GroupLook) -> None:
        """On the looking thread."""
        with suppress(RuntimeError):  # the console has just been left
            self.post_message(self.Looked(look))

    def on_groups_screen_looked(self, event: Looked) -> None:
        event.stop()
        if not self.is_whole or self.console.standing().paused is not None:
            return
        if event.look.trouble and self._seen is not None:
            self._seen = self._seen._replace(trouble=event.look.trouble)
        elif event.look != self._seen:
            self._seen = event.look
            self.table.put(event.look.groups)
        self.settle()

    def settle(self) -> None:
        """Everything around the table says how it stands now."""
        seen, standing = self._seen, self.console.standing()
        count = self.table.rows
        self.query_one(StatusBar).standing = standing._replace(
            view=f"groups {count}", filter="", marked=0, shown=0, total=0
        )
        self.table.stale = standing.stale_sec is not None or bool(seen and seen.trouble)
        self.set_class(not count, "-empty")
        if seen is not None and not count:
            self.query_one(".empty", Static).update(one_line(seen.trouble) or _NOBODY)
        self.query_one(".sign", Static).update(self._sign())
        self.query_one(KeyBar).show(self.keys())

    def _sign(self) -> str:
        """What was decided about the one under the cursor, in full, and who scales."""
        if self._seen is None:
            return ""
        last = self.table.group.last if self.table.group is not None else None
        words = [decision_words(last), figure_words(last)] if last is not None else []
        said = (self._seen.trouble or self._seen.scaled_by, *words)
        return one_line("  ·  ".join(filter(None, said)))

    def on_group_table_moved(self, event: GroupTable.Moved) -> None:
        event.stop()
        self.settle()

    # -- what is asked -------------------------------------------------------------------------

    def lacks(self, name: str) -> str | None:
        if name in _ON_A_JOB:
            return refusal(ACTIONS[name], self.desk) or "no single job is seen here"
        if name not in _TO_A_GROUP:
            return super().lacks(name)
        if (reason := refusal(ACTIONS[name], self.desk)) is not None:
            return reason
        group = self.table.group if self.is_mounted else None
        if group is None:
            return "there is no group here"
        if name == "fewer-slots" and not group.slots:
            return "it has no limit" if group.slots is None else "it has no slots"
        return None

    @property
    def _group(self) -> Group:
        """Only after `lacks` had nothing against it."""
        group = self.table.group
        assert group is not None
        return group

    def _do_more_slots(self) -> None:
        group = self._group
        self._ask(group, group.running + 1 if group.slots is None else group.slots + 1)

    def _do_fewer_slots(self) -> None:
        self._ask(self._group, (self._group.slots or 0) - 1)

    def _do_usual_slots(self) -> None:
        self._ask(self._group, None)

    def _ask(self, group: Group, slots: int | None) -> None:
        now = "any number of" if group.slots is None else str(group.slots)
        to = "as many slots as mam.toml says" if slots is None else f"{slots} slots"
        question = f"Give group {group.name} {to}, on all hosts?"
        sample = [
            f"{now} slots now, {group.running} run, {group.waiting} wait",
            "what runs goes on",
        ]

        def answered(is_sure: bool | None) -> None:
            if is_sure:
                option = ["--reset"] if slots is None else ["--slots", str(slots)]
                act = partial(self._set, group.name, slots)
                run(self.console, ["group", group.name, *option], act, self._done)

        self.console.push_screen(Confirm(question, sample, "change"), answered)

    def _set(self, name: str, slots: int | None, registry: Registry) -> str:
        return set_slots(registry, self.desk.config, name, slots)

    def _done(self, deed: Deed) -> None:
        self._watch.rounds.soon()
        self.console.tell(deed)

    def _do_jobs_of_group(self) -> None:
        name = self._group.name
        self.dismiss()
        self.console.board.narrow(parse(f'group:"{name}"'))

    def _do_refresh(self) -> None:
        self._watch.rounds.soon()
        self.console.act("refresh")
