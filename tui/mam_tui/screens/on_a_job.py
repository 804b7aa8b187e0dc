"""What the views have in common that have a job of their own under the cursor.

It need not be the board's: whoever only comes by to look finds the board as it was left.
"""

from __future__ import annotations

from mam_tui.screens.view import View

TO_ITS_AGENT = ("attach", "say", "answer")


class OnAJob(View):
    """Talks to the agent of the job that is seen here."""

    @property
    def job_id(self) -> str:
        """Under the cursor; empty: there is none."""
        raise NotImplementedError

    def why_no_agent(self) -> str | None:
        """Why nothing can be said to it; None when something can."""
        row = self.desk.board.rows.get(self.job_id)
        if row is None:
            return "its record is gone" if self.job_id else "there is no job here"
        return None if row.is_running else "only a running job has an agent that listens"

    def _do_attach(self) -> None:
        self.console.talk.attach_to_job(self.job_id)

    def _do_say(self) -> None:
        self.console.talk.say(self.job_id)

    def _do_answer(self) -> None:
        self.console.talk.answer(self.job_id)
