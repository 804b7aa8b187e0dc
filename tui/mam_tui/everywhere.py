"""The actions that belong to no view: they are the same wherever the operator is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam_tui.actions import ACTIONS, Place, refusal
from mam_tui.commands import Command
from mam_tui.filters import NEEDING, parse, with_or_without
from mam_tui.views import BOARD, VIEWS

if TYPE_CHECKING:
    from mam_tui.app import Console


_NOT_HERE = "{} cannot be done in this view"


class Everywhere:
    """By the names in `mam_tui.actions`; the job is the one under the board's cursor."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def do(self, name: str) -> None:
        if ACTIONS[name].place is Place.PAST:
            self._console.travel.do(name)
            return
        handler = getattr(self, f"_do_{name.replace('-', '_')}", None)
        if handler is not None:
            handler()
        else:  # typed, or chosen, where another view is seen than the one that it belongs to
            self._refuse(_NOT_HERE.format(name))

    def obey(self, command: Command) -> None:
        """A command of the ``:`` line with a word."""
        console = self._console
        if command.name == "view":
            self.view(command.word)
        elif command.name == "at":
            console.travel.go_to(command.word)
        elif command.name in ACTIONS and ACTIONS[command.name].place is Place.PAST:
            console.board.action_act(command.name)
        elif command.name == "screenshot":
            self._picture(command.word)
        elif command.name == "report":
            self._report(command.word)
        elif command.name == "theme":
            if not console.choose_theme(command.word):
                themes = ", ".join(sorted(console.available_themes))
                self._refuse(f"there is no theme {command.word}: {themes}")
        else:
            self._refuse(_NOT_HERE.format(command.name))

    def view(self, name: str) -> None:
        if name in VIEWS:
            self._console.views.go(name)
        else:
            self._refuse(f"there is no view {name}: {', '.join(VIEWS)}")

    def _refuse(self, sentence: str) -> None:
        self._console.notify(sentence, severity="warning", markup=False)

    @property
    def _job_id(self) -> str:
        """Only after nothing was against the action: it needs a job."""
        job_id = self._console.desk.board.cursor
        assert job_id is not None
        return job_id

    def _do_new(self) -> None:
        self._console.jobs.new()

    def _do_bulk(self) -> None:
        self._console.jobs.bulk()

    def _do_clean(self) -> None:
        self._console.jobs.clean()

    def _do_undo(self) -> None:
        self._console.jobs.undo()

    def _do_spawn(self) -> None:
        """For the job under the cursor of the view that is seen, where one can wait."""
        board = self._console.desk.board
        row = board.rows.get(getattr(self._console.screen, "job_at_hand", board.cursor or ""))
        waits = row is not None and row.is_live
        self._console.session_acts.spawn(row.summary if row is not None and waits else None)

    def _do_attach(self) -> None:
        self._console.talk.attach_to_job(self._job_id)

    def _do_say(self) -> None:
        self._console.talk.say(self._job_id)

    def _do_answer(self) -> None:
        self._console.talk.answer(self._job_id)

    def _do_help(self) -> None:
        from mam_tui.screens.help import HelpScreen, keys_of

        screen = self._console.screen
        lacks = getattr(screen, "lacks", self._console.board.lacks)
        self._console.push_screen(HelpScreen(keys_of(screen, lacks)))

    def _do_log(self) -> None:
        from mam_tui.screens.deeds import DeedsScreen

        self._console.push_screen(DeedsScreen(list(self._console.desk.deeds)))

    def _do_audit(self) -> None:
        from mam_tui.screens.page import audit_page

        self._console.push_screen(audit_page(self._console))

    def _do_schedules(self) -> None:
        from mam_tui.screens.page import schedules_page

        self._console.push_screen(schedules_page(self._console))

    def _do_suspend(self) -> None:
        self._console.action_suspend_process()

    def _do_quit(self) -> None:
        self._console.exit()

    def _do_last_view(self) -> None:
        self._console.views.go_back()

    def _do_needing(self) -> None:
        """The board shows only those, or again what it showed before."""
        console = self._console
        narrowed = with_or_without(console.desk.board.filter.text, NEEDING)
        console.views.go(BOARD)
        console.board.narrow(parse(narrowed))

    def _do_attention(self) -> None:
        self.view("attention")

    def _do_screenshot(self) -> None:
        self._picture("")

    def _do_report(self) -> None:
        self._report("")

    def _report(self, path: str) -> None:
        """About the last day; the board and a job's screen know which jobs are meant."""
        if (reason := refusal(ACTIONS["report"], self._console.desk)) is not None:
            self._refuse(f"{ACTIONS['report'].words}: {reason}")
        else:
            self._console.jobs.report((), path)

    def _picture(self, path: str) -> None:
        from mam_tui.screenshot import take

        take(self._console, path)

    def _do_travel(self) -> None:
        self._console.travel.toggle()

    def _do_pause(self) -> None:
        self._console.inflow.toggle()
        self._console.settle()

    def _do_refresh(self) -> None:
        self._console.bridge.rescan()
        self._console.settings.look_now()

    def _do_read_only(self) -> None:
        desk = self._console.desk
        desk.read_only = not desk.read_only
        self._console.bridge.serve(not desk.read_only)
        self._console.settle()
