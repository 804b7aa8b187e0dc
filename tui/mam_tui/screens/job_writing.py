"""What is filled in: a new job, a pending one that is changed, a file of jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mam_core.operations.agents import Choice, choices
from mam_core.operations.bulk import bulk_defaults
from mam_core.operations.bulk_preview import Preview, Stopped, preview, register_seen
from mam_core.operations.edit import edit
from mam_core.operations.filled_form import register_texts
from mam_core.operations.job_texts import (
    SETTLED,
    as_filled,
    as_request,
    as_texts,
    as_words,
    changed,
)
from mam_core.operations.outcome import Outcome
from mam_core.operations.register import defaults_of
from mam_core.records import Job
from mam_core.registry import Registry
from mam_tui.desk import Deed
from mam_tui.errands import ask, later, run
from mam_tui.screens.forms.bulk_form import BulkForm, Wanted
from mam_tui.screens.forms.job_form import JobForm, Suggested, Texts

if TYPE_CHECKING:
    from mam_tui.app import Console

#: What a new job takes over from the one before it.
_REMEMBERED = ("agent", "agent_session", "workdir", "model", "group", "timeout_sec")
#: A prompt that is longer stands in no command line that anybody reads.
_LONG = 120


class JobWriting:
    """One console's; `told` is called with a deed that was done."""

    def __init__(self, console: Console, told: Callable[[Deed], None]) -> None:
        self._console = console
        self._told = told

    # -- a new one -----------------------------------------------------------------------------

    def new(self) -> None:
        """The form; what was used last stands in it, or what the settings say."""
        config = self._console.desk.config
        ask(self._console, lambda _: (choices(config), defaults_of(config)), self._form, opens=True)

    def _form(self, known: tuple[Sequence[Choice], Mapping[str, Any]]) -> None:
        agents, defaults = known
        desk = self._console.desk
        rows = desk.board.rows.values()
        suggested = Suggested(
            [agent.name for agent in agents],
            sorted({row.summary.agent_session for row in rows if row.summary}),
            {name: as_filled(values) for name, values in desk.config.templates.items()},
            defaults,
        )
        texts = {name: str(defaults.get(name) or "") for name in _REMEMBERED}
        texts |= {name: text for name, text in self._console.choices.now.last_job.items() if text}
        send = partial(self._register, defaults)
        self._console.push_screen(JobForm("New job", texts, send, suggested=suggested))

    def _register(self, defaults: Mapping[str, Any], form: JobForm, texts: Texts) -> None:
        def act(registry: Registry) -> list[Outcome]:
            return [register_texts(registry, texts, defaults)]

        def done(deed: Deed) -> None:
            if deed.ok:
                self._console.choices.change(
                    last_job={name: texts.get(name, "") for name in _REMEMBERED}
                )
            self._answered(form, deed)

        run(self._console, ["register", *_options(texts)], act, done)

    def _answered(self, form: JobForm, deed: Deed) -> None:
        """A refusal stays in the form, as long as there is one."""
        if deed.ok or not form.is_attached:
            if form.is_attached:
                form.dismiss()
            self._told(deed)
        else:
            form.refuse(deed.sentences[0] if deed.sentences else "it did not work")

    # -- a pending one ---------------------------------------------------------------------------

    def edit(self, job_id: str) -> None:
        """A pending job's contract, as it stands now."""
        ask(self._console, lambda registry: registry.get(job_id), self._change, opens=True)

    def _change(self, job: Job) -> None:
        before = as_texts(job)

        def send(form: JobForm, held: Texts) -> None:
            filled, emptied = changed(before, held)
            if not filled and not emptied:
                form.dismiss()
                self._console.notify("nothing was changed", markup=False)
                return
            words = ["edit", job.job_id, *_options(filled, emptied)]

            def act(registry: Registry) -> list[Outcome]:
                return [edit(registry, job.job_id, as_request(filled), emptied)]

            run(self._console, words, act, partial(self._answered, form))

        form = JobForm(f"Change job {job.job_id}", before, send, fixed=SETTLED)
        self._console.push_screen(form)

    # -- many ------------------------------------------------------------------------------------

    def bulk(self, path: str = "") -> None:
        """The form, with a path that is looked at once it is there."""
        templates = list(self._console.desk.config.templates)
        self._console.push_screen(BulkForm(path, templates, self._look, self._register_file))

    def _look(self, form: BulkForm, wanted: Wanted) -> None:
        console = self._console
        path = os.path.expanduser(wanted.path)

        def read(registry: Registry) -> Preview | None:
            try:
                return preview(
                    registry,
                    path,
                    bulk_defaults(console.desk.config, wanted.template),
                    tell=lambda lines: later(console, form.progress, wanted, lines),
                    is_over=lambda: not (console.is_running and form.wants(wanted)),
                )
            except Stopped:
                return None

        def seen(found: Preview | None) -> None:
            if found is not None:
                form.show(wanted, found)

        ask(console, read, seen, partial(form.refuse, wanted))

    def _register_file(self, form: BulkForm, wanted: Wanted, seen: Preview) -> None:
        config = self._console.desk.config

        def act(registry: Registry) -> str:
            defaults = bulk_defaults(config, wanted.template)
            return register_seen(registry, seen, defaults, written)

        def written(percent: int) -> None:
            later(self._console, form.registering, percent)

        def done(deed: Deed) -> None:
            if deed.ok or not form.is_attached:
                if form.is_attached:
                    form.dismiss()
                self._told(deed)
            else:
                form.refuse(wanted, deed.sentences[0])

        words = ["register", "--bulk", seen.path]
        if wanted.template:
            words += ["--template", wanted.template]
        run(self._console, words, act, done)


def _options(texts: Texts, emptied: Sequence[str] = ()) -> list[str]:
    """As they would be typed; a long prompt would be given by a file."""
    prompt = texts.get("prompt", "")
    if len(prompt) > _LONG or "\n" in prompt:
        return ["--prompt-file=-", *as_words({**texts, "prompt": ""}, emptied)]
    return as_words(texts, emptied)
