"""What the view of dependencies knows: the graph as it was made last, what changed since, and
what the operator folded or filtered away. No Textual in here."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from mam_core.summaries import Summary
from mam_tui.desk import Desk
from mam_tui.filters import Filter
from mam_tui.graph.lines import Drawing, Folds, GraphLine, Kind, lines_of
from mam_tui.graph.reading import Question, Read, nothing_yet
from mam_tui.graph.text import Facts
from mam_tui.hints import help_key


class GraphState:
    """Of one desk, for the console's own thread."""

    def __init__(self, desk: Desk) -> None:
        self.filter = Filter()
        self.folds = Folds()
        self.folded_groups: frozenset[str] = frozenset()
        self.read = nothing_yet()
        self._desk = desk
        self._known: dict[str, Summary] = {}
        self._since: set[str] | None = None  #: what changed while it is made; None: it is not

    @property
    def drawing(self) -> Drawing:
        return self.read.drawing

    @property
    def is_being_made(self) -> bool:
        return self._since is not None

    def facts(self) -> Facts:
        """As of now."""
        made, desk = self.read, self._desk
        return Facts(
            desk.board.rows, made.drawing.graph, made.reasons, desk.now(), partial(help_key, desk)
        )

    # -- making it, and what changes -----------------------------------------------------------

    def question(self) -> Question:
        """What the thread needs; from now on changes are noted for its answer."""
        self._since = set()
        rows = self._desk.board.rows.values()
        jobs = [row.summary for row in rows if row.summary is not None]
        return Question(jobs, self.folded_groups, self._desk.now(), self._desk.board.reasons)

    def take(self, made: Read) -> bool:
        """The thread's answer; whether it is old already."""
        since, self._since = self._since or set(), None
        self.read = made
        self._known = dict(made.known)
        matters = [self.tell(job_id) for job_id in since]
        return any(matters)

    def tell(self, job_id: str) -> bool:
        """A record is another; whether more than a line may look different for it."""
        if self._since is not None:
            self._since.add(job_id)
        row, before = self._desk.board.rows.get(job_id), self._known.get(job_id)
        now = row.summary if row is not None else None
        if now is None:
            self._known.pop(job_id, None)
            return before is not None
        self._known[job_id] = now
        if before is not None and _of_the_graph(before) == _of_the_graph(now):
            return False
        drawn = self.drawing
        if now.parents or job_id in drawn.tree_of or job_id in drawn.held:
            return True
        if now.group is not None and now.group in drawn.held_groups:
            return True  # it may have made room for another
        return self.read.reasons.is_held(now, self._desk.now())

    # -- what is seen --------------------------------------------------------------------------

    def fitting(self) -> Collection[str] | None:
        """The jobs that the filter lets through; None: there is no filter."""
        if not self.filter.tests:
            return None
        rows, now = self._desk.board.rows, self._desk.now()
        ids = (*(job_id for tree in self.drawing.trees for job_id in tree.jobs), *self.drawing.held)
        return {
            job_id
            for job_id in ids
            if (row := rows.get(job_id)) is not None and self.filter.fits(row, now)
        }

    def lines(self, fitting: Collection[str] | None) -> list[GraphLine]:
        """What a filter found is not folded away."""
        folds = self.folds
        if fitting is not None:
            folds = folds._replace(shows_finished=True)
        return lines_of(self.drawing, folds, fitting)

    def near(self, line: GraphLine) -> str:
        """The key of the line that has one that is gone: the fold of its tree, or its first."""
        tree = self.drawing.tree_of.get(line.name, line.name)
        return f"{Kind.NODE if line.kind is Kind.FOLD else Kind.FOLD} {tree}"

    # -- folding -------------------------------------------------------------------------------

    def turn(self, name: str) -> bool:
        """Fold the tree in which this stands, or open it; False: it stands in none."""
        tree = self.drawing.tree_of.get(name)
        if tree is None:
            return False
        self.folds = self.folds._replace(turned=self.folds.turned ^ {tree})
        return True

    def turn_finished(self) -> None:
        self.folds = Folds(not self.folds.shows_finished)

    def turn_group(self, group: str) -> None:
        self.folded_groups ^= {group}

    def turn_groups(self) -> None:
        """All of them, unless some are folded: then none."""
        self.folded_groups = frozenset() if self.folded_groups else self.drawing.groups


def _of_the_graph(job: Summary) -> tuple[object, ...]:
    """What a place in the graph depends on."""
    return job.status, job.parents, job.group, job.agent, job.agent_session, job.not_before
