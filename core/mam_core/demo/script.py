"""What happens in a demonstration, and when: jobs as data, the same ones every time.

The first ones show every state within seconds; then more follow at an easy pace, drawn by a
seeded hand, for as long as somebody looks on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

from mam_core.demo.settings import CODER, GROUP, LABELS, LIMITED, REVIEWER

SEED = 7
MOST_JOBS = 1000


class Cue(NamedTuple):
    """A job that is registered at its moment."""

    at: float  #: seconds after the beginning
    agent: str
    task: str
    steps: tuple[str, ...]
    name: str = ""  #: for those that others come after
    after: str = ""  #: the name of such a one
    fields: Mapping[str, Any] = MappingProxyType({})

    @property
    def prompt(self) -> str:
        told = "\n".join(f"  {step}" for step in self.steps)
        return (
            f"{self.task}\n\nThis is a demonstration; the simulated agent does these steps:\n{told}"
        )

    def request(self, workdir: str, ids: dict[str, str]) -> dict[str, Any]:
        """As `register` takes it; `ids` are those of the named jobs so far."""
        after = {"after": [ids[self.after]]} if self.after in ids else {}
        return {
            "prompt": self.prompt,
            "agent": self.agent,
            "agent_session": LABELS[self.agent],
            "workdir": workdir,
            **after,
            **self.fields,
        }


def _writes(name: str) -> dict[str, Any]:
    return {"expected_artifacts": [name]}


_STORY = (
    Cue(
        0,
        CODER,
        "Find out why the login test is flaky",
        ("fail-first the test failed again", "work 2"),
        fields={"max_attempts": 3, "priority": 30},
    ),
    Cue(
        0,
        CODER,
        "Write the release notes",
        ("work 2", "write docs/release-notes.md"),
        name="notes",
        fields={"priority": 20, **_writes("docs/release-notes.md")},
    ),
    Cue(0, REVIEWER, "Clear the build folder", ("work 1", "ask rm -rf build", "work 1")),
    Cue(0, LIMITED, "Translate the manual", ("limit-first 8", "work 2")),
    Cue(0, LIMITED, "Translate the error messages", ("work 2", "write i18n/errors.md")),
    Cue(
        0,
        CODER,
        "Rename the table of the users",
        ("work 1", "fail the migration cannot be undone"),
        fields={"priority": 10},
    ),
    Cue(0, CODER, "Announce the release", ("work 2", "write docs/news.md"), after="notes"),
    Cue(2, REVIEWER, "Review the change of the parser", ("work 6", "write reviews/parser.md")),
    Cue(4, CODER, "Count the open questions", ("work 4",), fields={"group": GROUP}),
    Cue(4, CODER, "Sort the backlog", ("work 3",), fields={"group": GROUP}),
    Cue(
        6,
        CODER,
        "Draw the diagram of the services",
        ("work 2",),
        fields=_writes("docs/services.svg"),
    ),
    Cue(8, CODER, "Measure the import", ("silent 600",), fields={"idle_timeout_sec": 4}),
)  # fmt: skip

_CODING = (
    "Split the settings page",
    "Make the search faster",
    "Remove the old importer",
    "Write tests for the calendar",
    "Update the licence texts",
    "Give the reports a table of contents",
    "Close files in the uploader",
    "Replace the hand-made parser",
)
_REVIEWING = (
    "Review the change of the cache",
    "Look for secrets in the logs",
    "Check the texts of the buttons",
    "Compare the two queue designs",
)
_COMMANDS = ("git push --force", "pip install left-pad", "curl https://example.invalid", "make all")


#: So many come quickly, so that the board fills.
_QUICK = 40
#: Names of files come round again.
_FILES = 200


def cues(jobs: int | None, seed: int = SEED) -> Iterator[Cue]:
    """So many, by their moments; None: without end."""
    yield from _STORY[:jobs]
    hand = random.Random(seed)
    at = _STORY[-1].at
    for number in count(len(_STORY)) if jobs is None else range(len(_STORY), jobs):
        at += hand.uniform(1.5, 4.0) if number < _QUICK else hand.uniform(3.0, 9.0)
        yield _drawn(at, number, hand)


def _drawn(at: float, number: int, hand: random.Random) -> Cue:
    seconds = hand.randint(2, 7)
    kind = hand.choices(
        ("code", "review", "ask", "flaky", "fail", "translate", "limit"),
        (8, 4, 2, 2, 1, 2, 1),
    )[0]
    work, page = f"work {seconds}", f"{number % _FILES:03}.md"
    name = f"out/{page}"
    steps: tuple[str, ...]
    if kind == "review":
        steps = (work, f"write reviews/{page}")
        return Cue(at, REVIEWER, hand.choice(_REVIEWING), steps)
    if kind == "ask":
        steps = (work, f"ask {hand.choice(_COMMANDS)}", "work 1")
        return Cue(at, REVIEWER, hand.choice(_REVIEWING), steps)
    if kind in ("translate", "limit"):
        steps = (work, "limit-first 12", work) if kind == "limit" else (work,)
        return Cue(at, LIMITED, f"Translate chapter {number}", steps)
    task = hand.choice(_CODING)
    if kind == "flaky":
        steps = (work, "fail-first a test timed out", f"write {name}")
        return Cue(at, CODER, task, steps, fields={"max_attempts": 2, **_writes(name)})
    if kind == "fail":
        return Cue(at, CODER, task, (work, "fail it does not build"))
    group = {"group": GROUP} if hand.random() < 0.2 else {}
    priority = {"priority": hand.choice((0, 0, 0, 5))}
    return Cue(
        at, CODER, task, (work, f"write {name}"), fields={**_writes(name), **group, **priority}
    )
