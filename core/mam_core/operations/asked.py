"""What an agent asks, as a person needs to see it: the words, what it would do, the choices."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from mam_core.agents.profiles import profile_of
from mam_core.agents.screens import Choice, Meaning, rules_of
from mam_core.errors import MamError, TransitionRefused
from mam_core.operations.answer import OpenQuestion, in_full
from mam_core.operations.panes import Panes, screen_of
from mam_core.registry import Registry

__all__ = ["Asked", "Choice", "asked"]


#: So much of a screen is shown with its question.
_LINES = 20


class Asked(NamedTuple):
    """One open question. Everything in it is the agent's: foreign text."""

    question: OpenQuestion
    choices: tuple[Choice, ...] = ()  #: as its screen offers them; none: yes, no or a text
    screen: tuple[str, ...] = ()  #: where it is asked, if it is asked there and nowhere else

    def to_dict(self) -> dict[str, Any]:
        """For another host, which knows neither the agent's output nor its screen."""
        return {
            "question": self.question._asdict(),
            "choices": [choice._asdict() for choice in self.choices],
            "screen": list(self.screen),
        }

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Asked:
        """Raises KeyError, TypeError or ValueError for what is none."""
        question = said["question"]
        given = question["given"]
        if not (given is None or isinstance(given, dict)):
            raise TypeError("given")
        return cls(
            OpenQuestion(
                str(question["name"]), str(question["words"]), given, str(question["number"])
            ),
            tuple(map(_choice, said["choices"])),
            tuple(map(str, said["screen"])),
        )


def asked(registry: Registry, job_id: str, panes: Panes) -> list[Asked]:
    """What the job waits for, the oldest first; raises when that is nothing."""
    questions = in_full(registry, job_id)
    if not questions:
        raise TransitionRefused(f"job {job_id} waits for no answer")
    return [
        Asked(one) if one.name else _on_screen(registry, job_id, panes, one) for one in questions
    ]


def _choice(said: Mapping[str, Any]) -> Choice:
    return Choice(
        str(said["words"]),
        tuple(map(str, said["keys"])),
        Meaning(said["means"]),
        str(said["number"]),
        bool(said["selected"]),
    )


def _on_screen(registry: Registry, job_id: str, panes: Panes, question: OpenQuestion) -> Asked:
    """A screen that cannot be seen or read leaves the question to be answered by words."""
    found = Asked(question)
    with suppress(MamError):
        capture = panes.plain(screen_of(registry, job_id, panes).pane_id)
        written = [line.rstrip() for line in capture.lines if line.strip()]
        found = found._replace(screen=tuple(written[-_LINES:]))
        rules = rules_of(profile_of(panes.config, registry.get(job_id).agent))
        found = found._replace(choices=rules.read(capture.lines, capture.title).choices)
    return found
