"""The first ten minutes: from an empty board to an artifact, by keys alone, and out again."""

from __future__ import annotations

import os

from mam_core.records import Status
from mam_core.stores.base import Query
from tests.support.sessions import SessionShop
from tests.support.stream import modes_left_on
from tests.support.terminal import Terminal

#: A pipe: who writes into it waits until somebody reads.
GATE = "gate"
STEPS = ("Write a page", "  work 1", f"  write {GATE}", "  write made.txt")


def test_a_first_job_from_the_form_to_its_artifact(site: SessionShop, window: Terminal) -> None:
    before = window.modes()
    window.run("mam")
    window.until("there are no jobs yet", "Welcome")
    job_id = _registered(site, window)
    _run_by_a_session_of_its_own(site, window, job_id)
    _looked_at(window)
    _left(window, before)


def _registered(site: SessionShop, window: Terminal) -> str:
    """The hint of a first run stands there and holds no key back."""
    window.press("n")
    window.until("New job")
    window.press("C-s")
    window.until("look at prompt, agent, session")
    for line in STEPS:
        window.type(line)
        window.press("Enter")
    # As fast as a paste: every word lands in its own box, and none is left behind.
    for box in ("simulated", "tmux:first", "", "", "made.txt"):
        window.press("Tab")
        if box:
            window.type(box)
    window.press("C-s")
    window.until("1 queued", "Write a page")
    (job_id,) = (one.job_id for one in site.registry.store.find(Query())[0])
    window.until_told(f"job {job_id} is registered")
    job = site.job(job_id)
    assert job.prompt == "".join(f"{line}\n" for line in STEPS)
    assert (job.agent, job.agent_session) == ("simulated", "tmux:first")
    assert job.expected_artifacts == ("made.txt",)
    return job_id


def _run_by_a_session_of_its_own(site: SessionShop, window: Terminal, job_id: str) -> None:
    os.mkfifo(site.folder / GATE)
    window.press("s")
    window.until("Start agent sessions", "tmux:first")  # the label of the job that waits
    window.type("simulated")
    window.press("C-s")
    window.until_gone("Start agent sessions")
    window.press("]")
    window.until_told("session first is up")
    window.until("1 working", "[tail]", "progress     [simulated]")
    (site.folder / GATE).read_text()
    window.until("1 completed")
    assert site.until_status(job_id, Status.COMPLETED).attempt == 1
    assert (site.folder / "made.txt").exists()
    assert site.names(job_id)[0] == "started"
    assert site.names(job_id)[-1] == "completed"


def _looked_at(window: Terminal) -> None:
    window.press("]", "]", "]")
    window.until("[artifacts]", "1 of 1 as promised", "made.txt")
    window.press("2")
    window.until("mam sessions 1", "free")
    window.press("x")
    window.until("Stop session first?")
    window.press("y")
    window.until("there are no agent sessions yet")
    window.press("q")  # only the board is the root
    window.until("mam board")


def _left(window: Terminal, before: dict[str, str]) -> None:
    """The terminal is as it was, and nothing of ours is left."""
    assert window.modes()["alternate_on"] == "1"
    window.press("q")
    window.until_prompt()
    assert window.modes() == before
    # The shell's own mode for pastes, and what every terminal begins with.
    assert modes_left_on(window.written()) <= {"?2004", "?25", "?7"}
    window.until_gone("mam board")
    window.until_alone()
