"""The hosts: who is there and how they stand, who is cut off and since when, who claims no more.

What they say of themselves is listened to only while this is seen. Without a broker the
last words stay, dimmed, and what the records say of hosts is shown beside them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Static

from mam_core.operations.nodes import Node
from mam_core.safe_text import one_line
from mam_tui.actions import ACTIONS, Place, key_of
from mam_tui.desk import Desk
from mam_tui.filters import parse
from mam_tui.nodes.reasons import why_not
from mam_tui.nodes.watch import NodeLook, NodeWatch
from mam_tui.screens.node_acts import NodeActs
from mam_tui.screens.view import View, bindings
from mam_tui.widgets.key_bar import KeyBar
from mam_tui.widgets.node_table import NodeTable
from mam_tui.widgets.status_bar import StatusBar

#: Of the board's actions those that make sense here, too.
_BORROWED = ("sort", "reverse", "open", "export")
_NO_NODES = """\
no host works on this registry just now

s  starts an agent session on this one
mam work --agent-session LABEL  runs jobs without tmux, here or on any host that shares the store

docs/hosts.md has how a second host joins"""


class NodesScreen(View):
    """Table and keys."""

    DEFAULT_CSS = """
    NodesScreen .trouble { height: auto; color: $text-error; text-style: bold; display: none; }
    NodesScreen .trouble.-on { display: block; }
    NodesScreen.-empty NodeTable { display: none; }
    """
    NAME = "nodes"
    PLACES = (Place.NODES, Place.EVERYWHERE)
    BINDINGS: ClassVar[list[BindingType]] = bindings(PLACES, _BORROWED)

    class Looked(Message):
        """From the looking thread."""

        def __init__(self, look: NodeLook) -> None:
            super().__init__()
            self.look = look

    def __init__(self, desk: Desk, *, ascii_only: bool = False) -> None:
        super().__init__(desk, ascii_only=ascii_only)
        self.last: NodeLook | None = None
        self.watch_nodes = NodeWatch(desk, self._post)

    def compose(self) -> ComposeResult:
        yield StatusBar(ascii_only=self._ascii)
        yield Static(classes="trouble", markup=False)
        yield NodeTable(self.desk.nodes, ascii_only=self._ascii, clock=self.desk.now)
        yield Static("listening …", classes="empty", markup=False)
        yield KeyBar()

    @property
    def table(self) -> NodeTable:
        return self.query_one(NodeTable)

    # -- while it is seen ----------------------------------------------------------------------

    def on_mount(self) -> None:
        self._acts = NodeActs(self.console, self.watch_nodes.rounds.soon)
        self.app.app_suspend_signal.subscribe(
            self, lambda _: self.watch_nodes.rounds.rest(), immediate=True
        )
        self.app.app_resume_signal.subscribe(self, lambda _: self._resume())
        self.table.focus()
        self.settle()

    def on_screen_resume(self) -> None:
        self._resume()

    def on_screen_suspend(self) -> None:
        self.watch_nodes.rounds.rest()

    def on_unmount(self) -> None:
        self.watch_nodes.close()

    @property
    def _is_held(self) -> bool:
        return self.console.standing().paused is not None

    def _resume(self) -> None:
        if not self.is_seen:
            return
        if self._is_held:
            self.watch_nodes.rounds.rest()
        else:
            self.watch_nodes.rounds.watch()
        self.settle()

    def _post(self, look: NodeLook) -> None:
        """On the looking thread."""
        with suppress(RuntimeError):  # the console has just been left
            self.post_message(self.Looked(look))

    # -- what is seen --------------------------------------------------------------------------

    def on_nodes_screen_looked(self, event: Looked) -> None:
        event.stop()
        if not self.is_seen or self._is_held:
            return
        look = self.last = event.look
        self.table.stale = look.is_stale
        if look.nodes is not None:
            self.table.put(look.nodes)
        line = self.query_one(".trouble", Static)
        line.update(one_line(look.trouble))
        line.set_class(bool(look.trouble), "-on")
        self.settle()

    def settle(self) -> None:
        """Everything around the table says how it stands now."""
        rows = self.desk.nodes.rows
        self.query_one(StatusBar).standing = self.console.standing()._replace(
            view=f"nodes {len(rows)}", filter="", marked=0, shown=0, total=0
        )
        self.set_class(not rows, "-empty")
        if not rows:
            self.query_one(".empty", Static).update(self._why_none())
        self.table.tick()
        self.query_one(KeyBar).show(self.keys())

    def _why_none(self) -> str:
        if self.last is None:
            return "the picture is held: p lets it go on" if self._is_held else "listening …"
        return _NO_NODES

    # -- what is asked -------------------------------------------------------------------------

    def lacks(self, name: str) -> str | None:
        """Why an action cannot be done to the host under the cursor; None when it can."""
        return why_not(ACTIONS[name], self.desk)

    def keys(self) -> list[tuple[str, str]]:
        """What enter does here stands right behind the help."""
        found = super().keys()
        if self.lacks("open") is None:
            found.insert(1, (key_of(ACTIONS["open"], self.desk), "its jobs"))
        return found

    def action_act(self, name: str) -> None:
        super().action_act(name)
        self._resume()  # the picture may be held now, or read-only

    def on_short_table_moved(self) -> None:
        self.settle()

    def on_short_table_opened(self) -> None:
        self.action_act("open")

    def _do_open(self) -> None:
        """Its jobs, on the board."""
        console, name = self.console, self._node.name
        console.views.go("board")
        console.board.narrow(parse(f'node:"{name}"' if " " in name else f"node:{name}"))

    def _do_export(self) -> None:
        rows = [node.to_dict() for node in self.desk.nodes.rows]
        self.console.jobs.export_rows(rows, "node", "nodes")

    def _do_drain(self) -> None:
        self._acts.drain(self._node)

    def _do_undrain(self) -> None:
        self._acts.undrain(self._node)

    def _do_refresh(self) -> None:
        self.watch_nodes.rounds.soon()
        self.console.act("refresh")

    def _do_sort(self) -> None:
        self.table.sort_by_next()

    def _do_reverse(self) -> None:
        self.table.reverse()

    @property
    def _node(self) -> Node:
        """Only after `lacks` had nothing against it."""
        node = self.desk.nodes.row
        assert node is not None
        return node
