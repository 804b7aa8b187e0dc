"""To take away what has ended, and to take the last act back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mam_core.operations.clean import Cleaned, Selection, clean, undo
from mam_core.operations.outcome import Outcome
from mam_core.operations.take_back import take_back
from mam_core.registry import Registry
from mam_core.safe_text import one_line
from mam_tui.desk import Deed
from mam_tui.errands import ask, run
from mam_tui.screens.confirm import Confirm
from mam_tui.trail import Step, jobs

if TYPE_CHECKING:
    from mam_tui.app import Console


class Undoing:
    """One console's; `sample` tells of jobs in a question, `told` hears of each deed."""

    def __init__(
        self,
        console: Console,
        sample: Callable[[Sequence[str]], list[str]],
        told: Callable[[Deed], None],
    ) -> None:
        self._console = console
        self._sample = sample
        self._told = told

    # -- clean -----------------------------------------------------------------------------------

    def clean(self) -> None:
        """The marked ones, else those that have ended and are shown; first it is only asked."""
        board = self._console.desk.board
        rows = [board.rows[job_id] for job_id in board.chosen()] if board.marks else board.view()
        ended = [row for row in rows if row.summary is not None and row.summary.status.is_ended]
        if not ended:
            what = "that is marked" if board.marks else "that is shown"
            self._say(f"there is nothing to clean: no job {what} has ended")
            return
        selection = Selection(tuple(row.job_id for row in ended))
        ask(
            self._console,
            partial(clean, selection=selection, dry_run=True),
            self._really,
            opens=True,
        )

    def _really(self, found: Cleaned) -> None:
        ids, kept = found.job_ids, [one.message for one in found.outcomes if not one.ok]
        if not ids:
            self._say(kept[0] if kept else "there is nothing to clean")
            return

        def answered(is_sure: bool | None) -> None:
            if is_sure:
                run(self._console, ["clean", *ids], partial(self._clean, ids), self._told)

        question = f"Clean {jobs(ids)} away? u brings {'it' if len(ids) == 1 else 'them'} back"
        stays = [f"{len(kept)} more stay: {kept[0]}"] if kept else []
        sample = self._sample(ids)
        self._console.push_screen(Confirm(question, [*stays, *sample], "clean"), answered)

    def _clean(self, ids: Sequence[str], registry: Registry) -> list[Outcome]:
        done = clean(registry, Selection(tuple(ids)))
        refused = [one for one in done.outcomes if not one.ok]
        if done.batch is None:
            return refused
        self._console.desk.trail.cleaned(done.batch, done.job_ids)
        words = f"{jobs(done.job_ids)} cleaned away; u brings back what went"
        return [Outcome("", True, words), *refused]

    # -- undo ------------------------------------------------------------------------------------

    def undo(self) -> None:
        """The last act; what cannot be undone says so, and the next `u` goes on before it."""
        trail = self._console.desk.trail
        step = trail.last
        if step is None:
            return
        if step.why_not:
            trail.remove(step)
            before = trail.last
            more = f"; u again is about the act before it: {before.words}" if before else ""
            self._say(f"{step.words} cannot be undone: {step.why_not}{more}")
        elif step.batch:
            words = ["clean", "--undo", step.batch]
            self._run(step, words, partial(_bring_back, step.batch))
        else:
            self._uncancel(step)

    def _uncancel(self, step: Step) -> None:
        ids = [one.job_id for one in step.cancels]
        act = partial(self._take_back, step)
        at_once = [one for one in step.cancels if one.not_before]
        if len(ids) == 1 and not at_once:
            self._run(step, ["retry", *ids], act)
            return

        def answered(is_sure: bool | None) -> None:
            if is_sure:
                self._run(step, ["retry", *ids], act)

        lost = [f"{one.job_id} waits for no moment any more: {one.not_before}" for one in at_once]
        question = f"Undo the {step.words}? {'It is' if len(ids) == 1 else 'They are'} queued again"
        self._console.push_screen(Confirm(question, [*lost, *self._sample(ids)], "undo"), answered)

    def _run(self, step: Step, words: list[str], act: Callable[[Registry], list[Outcome]]) -> None:
        """Not an act of its own: the next undo is about what was before."""
        trail = self._console.desk.trail
        trail.remove(step)
        reached: list[bool] = []

        def really(registry: Registry) -> list[Outcome]:
            outcomes = act(registry)
            reached.append(True)
            return outcomes

        def done(deed: Deed) -> None:
            if not reached:
                trail.push(step)
            self._told(deed)

        run(self._console, words, really, done, is_undo=True)

    def _take_back(self, step: Step, registry: Registry) -> list[Outcome]:
        outcomes, later = take_back(registry, step.cancels)
        self._console.desk.trail.cancelled(later)
        return outcomes

    def _say(self, sentence: str) -> None:
        self._console.notify(one_line(sentence), severity="warning", markup=False)


def _bring_back(batch: str, registry: Registry) -> list[Outcome]:
    ids = undo(registry, batch)
    if ids:
        return [Outcome("", True, f"{jobs(ids)} brought back")]
    return [Outcome("", False, f"there is no batch {batch} any more: it was brought back already")]
