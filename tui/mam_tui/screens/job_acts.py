"""What can be done to jobs: make one, change it, cancel, try again, take it back. From every view.

Each is a verb of the core, done on a thread; what destroys asks first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mam_core.operations.outcome import Outcome
from mam_core.operations.retry import retry
from mam_core.operations.take_back import cancel_to_take_back
from mam_core.registry import Registry
from mam_tui.desk import Deed
from mam_tui.errands import Act, run
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.line_form import LineForm
from mam_tui.screens.job_writing import JobWriting
from mam_tui.screens.undoing import Undoing
from mam_tui.trail import jobs

if TYPE_CHECKING:
    from mam_tui.app import Console


class JobActs:
    """One console's; `done` is called when something was done, whatever came of it."""

    def __init__(self, console: Console, done: Callable[[], None]) -> None:
        self._console = console
        self._done = done
        writing = JobWriting(console, self._told)
        self.new, self.edit, self.bulk = writing.new, writing.edit, writing.bulk
        undoing = Undoing(console, self.sample, self._told)
        self.clean, self.undo = undoing.clean, undoing.undo

    # -- end and try again ---------------------------------------------------------------------

    def cancel(self, chosen: Sequence[str]) -> None:
        self._ask("Cancel", chosen, lambda registry: self._cancel(registry, chosen))

    def _cancel(self, registry: Registry, chosen: Sequence[str]) -> list[Outcome]:
        outcomes, ours = cancel_to_take_back(registry, chosen)
        self._console.desk.trail.cancelled(ours)
        return outcomes

    def retry(self, chosen: Sequence[str]) -> None:
        self._ask("Retry", chosen, lambda registry: retry(registry, chosen))

    def _ask(self, verb: str, chosen: Sequence[str], act: Act) -> None:
        def answered(is_sure: bool | None) -> None:
            if is_sure:
                run(self._console, [verb.lower(), *chosen], act, self._told)

        question = f"{verb} {jobs(chosen)}?"
        self._console.push_screen(Confirm(question, self.sample(chosen), verb.lower()), answered)

    def sample(self, chosen: Iterable[str]) -> list[str]:
        """A line for each that is on the board, for a question."""
        rows = (self._console.desk.board.rows.get(job_id) for job_id in chosen)
        return [
            f"{row.job_id}  {row.word}  {row.summary.agent}  {row.summary.agent_session}  "
            f"{row.summary.head}"
            for row in rows
            if row is not None and row.summary is not None
        ]

    # -- take along ------------------------------------------------------------------------------

    def copy(self, chosen: Sequence[str]) -> None:
        """The ids, by the terminal's own way, which also works over ssh and in tmux."""
        self._console.copy_to_clipboard(" ".join(chosen))
        what = chosen[0] if len(chosen) == 1 else f"{len(chosen)} ids"
        words = f"{what}: given to the terminal's clipboard (OSC 52), if it takes it"
        self._console.notify(words, markup=False)

    def export(self, chosen: Sequence[str], ending: str = ".csv") -> None:
        """Into a new file, whose ending says how; the name that is offered has this one."""
        from mam_core.operations.export import export

        def named(path: str) -> None:
            words = ["export", *chosen, "--output", path]
            run(
                self._console,
                words,
                lambda registry: export(
                    registry, chosen, path, self._console.desk.services(registry)
                ),
            )

        count = "1 job" if len(chosen) == 1 else f"{len(chosen)} jobs"
        what = chosen[0] if len(chosen) == 1 else "jobs"
        kinds = ".csv a table, .json whole records, .md pages"
        self._ask_name(f"Write {count} to a new file: {kinds}", what, ending, named)

    def report(self, chosen: Sequence[str], path: str = "") -> None:
        """A page about these jobs, or about the last day where none is chosen."""
        from mam_core.operations.report import report

        def named(path: str) -> None:
            words = ["report", *chosen, "--output", path]
            run(
                self._console,
                words,
                lambda registry: report(
                    registry, path, chosen, services=self._console.desk.services(registry)
                ),
            )

        if path:
            named(path)
            return
        count = "1 job" if len(chosen) == 1 else f"{len(chosen)} jobs" if chosen else "the last day"
        title = f"Write a page about {count} to a new file: .html or .md"
        self._ask_name(title, chosen[0] if len(chosen) == 1 else "jobs", ".html", named)

    def export_rows(self, rows: Sequence[Mapping[str, object]], what: str, verb: str) -> None:
        """Of a list that is none of jobs; `verb` prints the same."""
        from mam_core.operations.export import export_rows

        def named(path: str) -> None:
            run(self._console, [verb, "--json"], lambda _: export_rows(rows, path, what))

        count = f"1 {what}" if len(rows) == 1 else f"{len(rows)} {what}s"
        title = f"Write {count} to a new file: .csv a table, .json"
        self._ask_name(title, f"{what}s", ".csv", named)

    def _ask_name(self, title: str, what: str, ending: str, named: Callable[[str], None]) -> None:
        now = time.localtime(self._console.desk.clock())
        name = time.strftime(f"{what}-%Y%m%d-%H%M%S{ending}", now)

        def answered(path: str | None) -> None:
            if path is not None:
                named(path)

        self._console.push_screen(LineForm(title, name), answered)

    def _told(self, deed: Deed) -> None:
        self._done()
        self._console.tell(deed)
