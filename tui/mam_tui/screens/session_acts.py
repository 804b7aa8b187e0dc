"""What can be done to sessions: start them, end them, bring them back. From every view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mam_core.operations.agents import Choice, choices
from mam_core.operations.outcome import Outcome
from mam_core.registry import Registry
from mam_core.summaries import Summary
from mam_tui.desk import Deed
from mam_tui.errands import ask, is_over, run
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.spawn_form import SpawnForm, Wish
from mam_tui.sessions.rows import SessionRow

if TYPE_CHECKING:
    from mam_tui.app import Console


class SessionActs:
    """One console's; `changed` is called when a session has come or gone."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._wish = Wish()  # what was used last stands there the next time
        self.changed: Callable[[], None] = lambda: None

    # -- start ---------------------------------------------------------------------------------

    def spawn(self, job: Summary | None = None, trouble: str = "") -> None:
        """The form; filled in so that `job`, which waits for a session, is taken."""
        wish = self._wish
        if job is not None:
            wish = wish._replace(label=job.agent_session, agent=job.agent)
        config = self._console.desk.config
        ask(
            self._console, lambda _: choices(config), partial(self._form, wish, trouble), opens=True
        )

    def _form(self, wish: Wish, trouble: str, agents: Sequence[Choice]) -> None:
        board = self._console.desk.board
        waiting = {
            row.summary.agent_session
            for row in board.rows.values()
            if row.summary is not None and row.is_live
        }
        form = SpawnForm(agents, wish, labels=sorted(waiting), trouble=trouble)
        self._console.push_screen(form, self._start)

    def _start(self, wish: Wish | None) -> None:
        if wish is None:
            return
        self._wish = wish
        self._console.notify("starting …", timeout=2, markup=False)
        run(self._console, wish.words(), partial(self._spawn, wish), self._started)

    def _spawn(self, wish: Wish, registry: Registry) -> list[Outcome]:
        from mam_core.operations.spawn import Wanted, plan, spawn  # git and tmux: not at the start

        desk = self._console.desk
        wanted = Wanted(
            wish.label, wish.agent, int(wish.how_many), wish.workdir or None, wish.worktree
        )
        planned = plan(
            desk.registry_path,
            desk.config,
            wanted,
            config_path=desk.config_path,
            allow_network=desk.allow_network,
        )
        said: list[str] = []
        up = [
            Outcome(session.name, True, f"session {session.name} is up, in {session.workdir}")
            for session in spawn(planned, desk.config, said.append)
        ]
        return [*up, *(Outcome("", True, words) for words in said)]

    def _started(self, deed: Deed) -> None:
        self.changed()
        if deed.ok:
            self._console.tell(deed)
        else:  # with everything that was filled in
            self.spawn(trouble=deed.sentences[0] if deed.sentences else "it did not work")

    # -- end -----------------------------------------------------------------------------------

    def stop(self, row: SessionRow, *, now: bool) -> None:
        running = ", ".join(row.seen.jobs)
        if now:
            question = f"Stop session {row.name} now, and end what it runs?"
            after = f"{running}: ended, and waits for another worker" if running else ""
            yes = "stop now"
        else:
            question = f"Stop session {row.name}?"
            after = f"{running} is finished first; X does not wait for it" if running else ""
            yes = "stop"
        sample = [f"{row.name}  {row.word}  {row.agent}", *([after] if after else [])]
        if row.branch:
            sample.append(f"worktree {row.branch}: stays if anything would be lost")

        def answered(is_sure: bool | None) -> None:
            if is_sure:
                words = ["stop", row.name, *(["--now"] if now else [])]
                run(self._console, words, partial(self._stop, row.name, now), self._done)

        self._console.push_screen(Confirm(question, sample, yes), answered)

    def _stop(self, name: str, now: bool, registry: Registry) -> list[Outcome]:
        from mam_core.operations.stop import stop

        desk = self._console.desk
        stopped = stop(
            registry,
            desk.registry_path,
            desk.config,
            name,
            now=now,
            tell=self._mention,
            is_interrupted=is_over(self._console),
        )
        return [Outcome(one.name, one.is_over, one.message) for one in stopped]

    def _mention(self, words: str) -> None:
        """On an errand's thread: it goes on for as long as a job may take."""
        self._console.notify(words, markup=False)
        self.changed()

    # -- back ----------------------------------------------------------------------------------

    def restore(self) -> None:
        """Those that a reboot took, all of them."""
        self._console.notify("bringing sessions back …", timeout=2, markup=False)
        run(self._console, ["restore"], self._restore, self._done)

    def _restore(self, registry: Registry) -> list[Outcome]:
        from mam_core.operations.restore import restore

        desk = self._console.desk
        found = restore(
            desk.registry_path,
            desk.config,
            lambda words: None,  # the same sentences come back
            allow_network=desk.allow_network,
        )
        back = [Outcome(one.name, True, one.message) for one in found if one.is_back]
        trouble = [Outcome(one.name, False, one.message) for one in found if one.is_trouble]
        return [*trouble, *back] or [Outcome("", True, "there is none to bring back")]

    def _done(self, deed: Deed) -> None:
        self.changed()
        self._console.tell(deed)
