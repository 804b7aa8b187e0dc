"""The board and the sessions as they were: models of their own, beside the live ones.

They are moved by what changed between two moments. The live board is only looked at once,
for its order, its filter and its cursor, so that the operator finds the way about.
"""

from __future__ import annotations

from math import inf

from mam_core.board.why import BlockReasons
from mam_core.operations.replay import Cursor, Past, Place, Then, sessions_of
from mam_core.operations.sessions_then import seen_then
from mam_core.summaries import Summary
from mam_tui.columns import sort_key
from mam_tui.model import Board, Effect
from mam_tui.sessions.columns import sort_key as session_key
from mam_tui.sessions.rows import SessionList, SessionRow, sooner
from mam_tui.travel.rows import RowThen
from mam_tui.travel.step import Step

#: When one job in so many changed, the view is merged anew instead of moved line by line.
_SHARE = 16
_FEW = 100


class Picture:
    """All that was there at `at`."""

    def __init__(self, past: Past, at: float, live: Board, sessions: SessionList) -> None:
        self._past = past
        self._cursor = Cursor(past, at)
        self.board = Board(sort_key, live.order)
        self.board.cursor = live.cursor
        self.board.filter = live.filter
        self.board.is_loaded = True
        self.sessions = SessionList(session_key, sessions.order)
        self.sessions.cursor = sessions.cursor
        self._rows: dict[str, RowThen] = {}  #: the board's own
        self._doubtful: set[str] = set()  #: jobs to judge again: are they blocked now?
        self._waiting: set[str] = set()  #: pending jobs with a start time, which may have passed
        self.board.reasons = BlockReasons(self._summary)
        self.board.tick(at)
        everything = self._cursor.all_places()
        changed = {one.job_id: self._put(one) for one in everything}
        self._judge()
        self.board.show_many(changed, ())

    @property
    def at(self) -> float:
        return self._cursor.at

    def then(self, job_id: str) -> Then | None:
        """How a job stood; None: it was not there."""
        row = self._rows.get(job_id)
        return None if row is None else row.then

    def move(self, at: float) -> Step:
        """Also when nothing changed by it: what has an age is older then."""
        board, touched = self.board, self._cursor.go(at)
        board.tick(at)
        known, places = self._rows, list(self._cursor.places(touched))
        before = {one.job_id: known[one.job_id].word for one in places if one.job_id in known}
        changed = {one.job_id: self._put(one) for one in places}
        for job_id, word in self._judge().items():
            before.setdefault(job_id, word)
            changed.setdefault(job_id, known[job_id])
        if len(changed) > max(_FEW, len(board.rows) // _SHARE):
            board.show_many(changed, before.values())
            return Step(frozenset(changed), (), True)
        lines, has_moved = [], False
        for job_id, row in changed.items():
            word = before.get(job_id, "")
            effect = board.drop(job_id) if row is None else board.show(row, word)
            has_moved |= effect is Effect.MOVED
            if effect is Effect.LINE:
                lines.append(job_id)
        return Step(frozenset(changed), tuple(lines), has_moved)

    def _summary(self, job_id: str) -> Summary | None:
        row = self._rows.get(job_id)
        return None if row is None else row.summary

    def _judge(self) -> dict[str, str]:
        """Judge again whether the jobs in doubt are blocked, and those with a start time. Returns
        the ones that may look different, with their words from before."""
        rows, doubtful, before = self._rows, self._doubtful, dict[str, str]()
        self._doubtful = set()
        for job_id in doubtful | self._waiting:
            if (row := rows.get(job_id)) is not None:
                word, was_held = row.word, row.held
                row.judge(self.at)
                if job_id in doubtful or row.held is not was_held:
                    before[job_id] = word
        for _ in self.board.reasons.due(inf):
            pass  # time goes both ways here: alarms are of no use
        return before

    def _put(self, place: Place) -> RowThen | None:
        """The row of a job is this now; None: there is none."""
        job_id, stand, word = place
        row, reasons = self._rows.get(job_id), self.board.reasons
        is_in_the_graph = (
            (stand is not None and stand.is_bound)
            or (row is not None and row.stand.is_bound)
            or reasons.precedes(job_id)
        )
        was = row.summary if is_in_the_graph and row is not None else None
        self._waiting.discard(job_id)
        if stand is None:
            self._rows.pop(job_id, None)
            self._doubtful.update(reasons.put(was, None))
            return None
        if row is None:
            row = self._rows[job_id] = RowThen(self._past, reasons, job_id, stand, word)
        else:
            row.stood(stand, word)
        if is_in_the_graph:
            self._doubtful.add(job_id)
            self._doubtful.update(reasons.put(was, row.summary))
        if stand.may_be_held and stand.contract.not_before is not None:
            self._waiting.add(job_id)
        self.board.note_use(stand.contract.group, stand.node)
        told = self._past.used(word)
        tokens, cost = stand.tokens or told.tokens, stand.cost or told.cost
        self.board.note_news(told.progress, tokens, cost, told.memory is not None)
        return row

    def seen_sessions(self) -> list[SessionRow]:
        """Over all jobs: for whoever looks at the sessions, and at nobody else's cost."""
        found, rows = [], self._rows
        for session in sessions_of((job_id, row.stand) for job_id, row in rows.items()):
            session = session._replace(running=tuple(sorted(session.running, key=self._order)))
            shown = {job_id: rows[job_id].shown for job_id in session.running}
            job_id = sooner(shown)
            found.append(SessionRow(seen_then(session), shown.get(job_id), job_id))
        return found

    def _order(self, job_id: str) -> tuple[int, str]:
        return self._rows[job_id].order, job_id
