"""To talk to agents and to look over their shoulders: the same from every view.

Each is one verb of the core, done on a thread, with its command line in the log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from mam_core.errors import MamError
from mam_core.operations.answer import answer
from mam_core.operations.asked import Asked
from mam_core.operations.attach import Attachment, attachment, shown
from mam_core.operations.broadcast import say_to_all
from mam_core.operations.delivery import RECEIPT_SEC, Wait
from mam_core.operations.outcome import Outcome
from mam_core.operations.panes import screen_of
from mam_core.operations.say import say
from mam_core.operations.seen import questions
from mam_core.registry import Registry
from mam_tui.desk import Deed
from mam_tui.errands import ask, is_over, run
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.answer_form import AnswerForm, Reply
from mam_tui.screens.forms.say_form import SayForm
from mam_tui.screens.notice import Notice
from mam_tui.sessions.rows import SessionRow

if TYPE_CHECKING:
    from mam_tui.app import Console

#: A longer text stands in no command line that anybody reads.
_LONG = 200

_NESTED = (
    "This is tmux inside tmux: the outer one takes the prefix key.",
    "Press the prefix twice and then d to come back here: ctrl-b ctrl-b d.",
)


class Talk:
    """One console's; `job_id` is that of a running job."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._knows_nesting = False

    # -- words ---------------------------------------------------------------------------------

    def say(self, job_id: str) -> None:
        def written(text: str | None) -> None:
            if text is not None:
                words = ["say", job_id, *_as_words(text)]
                run(console, words, lambda registry: [say(registry, job_id, text, self._wait())])

        console = self._console
        console.push_screen(SayForm(f"Say to the agent of job {job_id}"), written)

    def broadcast(self, rows: Sequence[SessionRow], *, deaf: int = 0) -> None:
        """To the job of each of these sessions; `deaf` were chosen, too, and have none."""
        console = self._console
        count = "1 session" if len(rows) == 1 else f"{len(rows)} sessions"
        if (at_work := sum(len(row.seen.jobs) for row in rows)) > len(rows):
            count += f", at {at_work} jobs"

        def written(text: str | None) -> None:
            if text is None:
                return
            lines = (f"{row.name}  {row.word}  {' '.join(row.seen.jobs)}" for row in rows)
            sample = [f"> {text}", *lines]
            if deaf:
                sample.insert(1, f"left out, since nobody listens there: {deaf} of the marked")
            question = Confirm(f"Say this to the agents of {count}?", sample, "say")
            console.push_screen(question, lambda is_sure: sent(text) if is_sure else None)

        def sent(text: str) -> None:
            names = {job_id: row.name for row in rows for job_id in row.seen.jobs}
            words = ["broadcast", *(word for one in names for word in ("--job", one))]
            run(console, [*words, *_as_words(text)], lambda registry: act(registry, names, text))

        def act(registry: Registry, names: Mapping[str, str], text: str) -> list[Outcome]:
            return [
                replace(one, message=f"{names[one.job_id]}: {one.message}")
                for one in say_to_all(registry, list(names), text, self._wait())
            ]

        console.push_screen(SayForm(f"Say to the agents of {count}"), written)

    def answer(self, job_id: str) -> None:
        """What it asks is read first: the answer is for that very question."""
        console = self._console

        def put(asked: list[Asked]) -> None:
            console.push_screen(AnswerForm(job_id, asked), replied)

        def replied(reply: Reply | None) -> None:
            if reply is not None:
                self._answer(job_id, reply)

        desk = console.desk
        ask(console, lambda it: questions(it, desk.others, desk.panes, job_id), put, opens=True)

    def _answer(self, job_id: str, reply: Reply) -> None:
        words = ["answer", job_id, *_as_words(reply.text)]
        if reply.question:
            words[2:2] = ["--question", reply.question]

        def act(registry: Registry) -> list[Outcome]:
            wait = self._wait()
            return [answer(registry, job_id, reply.text, wait, question=reply.question)]

        run(self._console, words, act)

    def _wait(self) -> Wait:
        return Wait(RECEIPT_SEC, is_over(self._console))

    # -- the agent's own screen ----------------------------------------------------------------

    def attach_to_job(self, job_id: str) -> None:
        """To the session in which it runs."""
        panes = self._console.desk.panes
        ask(
            self._console,
            lambda registry: screen_of(registry, job_id, panes).session,
            self.attach,
        )

    def attach(self, name: str) -> None:
        console, desk = self._console, self._console.desk
        found: list[Attachment] = []

        def act(registry: Registry) -> str:
            found.append(attachment(desk.registry_path, desk.config, name, os.environ))
            if not found[0].is_switch:
                return f"session {name} is shown in this terminal"
            shown(found[0])
            return f"this client of tmux shows session {name} now; its prefix and L come back"

        def done(deed: Deed) -> None:
            if not deed.ok or found[0].is_switch:
                console.tell(deed)
            elif found[0].is_nested and not self._knows_nesting:
                self._knows_nesting = True
                console.push_screen(Notice(_NESTED), lambda _: self._show(name, found[0]))
            else:
                self._show(name, found[0])

        run(console, ["attach", name], act, done)

    def _show(self, name: str, found: Attachment) -> None:
        """The console makes room, and comes back when the session is left or ends."""
        console = self._console
        try:
            with console.suspend():
                trouble = _trouble_with(found)
        except SuspendNotSupported:
            words = f"this terminal cannot be given away: `mam attach {name}` works in another one"
            console.notify(words, severity="error", markup=False)
            return
        if trouble:
            console.notify(trouble, severity="error", markup=False)


def _trouble_with(found: Attachment) -> str:
    """The console must come back whatever happens, so nothing is raised while it is away."""
    try:
        shown(found)
    except MamError as problem:
        return problem.message
    return ""


def _as_words(text: str) -> list[str]:
    """As arguments of a command; what is long or has several lines would be read from stdin."""
    if len(text) > _LONG or "\n" in text:
        return ["-"]
    return ["--", text] if text.startswith("-") else [text]
