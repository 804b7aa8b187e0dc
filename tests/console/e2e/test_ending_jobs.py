"""To cancel and to try again by key: only after a yes, and then truly."""

from __future__ import annotations

import pytest

from mam_core.records import Status
from tests.console.e2e.conftest import AGENT, command
from tests.support.sessions import SessionShop
from tests.support.terminal import Terminal

LABEL = "tmux:crew"


@pytest.mark.usefixtures("known")
def test_cancel_and_retry_by_key(site: SessionShop, window: Terminal) -> None:
    """A running job and its process, and one that waits; on the screen, on disk, in the log."""
    site.spawn("crew", AGENT)
    running = site.add(AGENT, "Dig a hole\n  work 600", agent_session=LABEL)
    site.until_status(running, Status.RUNNING)
    waiting = site.add(AGENT, "Fill it again", agent_session="tmux:nobody")
    window.run("mam")
    window.until("1 working", "1 queued", running, waiting)
    command(window, f"job {running}")
    for refusal in (["c"], ["Enter"], ["n"], ["Escape"], ["c", "c", "Enter"]):
        window.press("c")
        window.until(f"Cancel job {running}?", "Dig a hole")
        window.press(*refusal)
        if refusal == ["c"]:
            window.until(f"Cancel job {running}?")
            window.press("Escape")
        window.until_gone(f"Cancel job {running}?")
    assert site.job(running).status is Status.RUNNING
    assert site.job(running).cancel_requested_at is None
    assert site.survivors()

    _cancel(window, running)
    window.until("1 cancelled", "1 queued")
    assert site.until_status(running, Status.CANCELLED).reason == "cancelled"
    site.until_nobody_lives()
    (asked,) = site.audit(running, "cancel_requested")
    assert asked["by"]

    command(window, f"job {waiting}")
    _cancel(window, waiting)
    window.until("2 cancelled")
    assert site.job(waiting).status is Status.CANCELLED

    window.press("r")
    window.until(f"Retry job {waiting}?")
    window.press("y")
    window.until("1 cancelled", "1 queued")
    window.until_told(f"$ mam retry {waiting}")
    assert site.job(waiting).status is Status.PENDING
    changes = [(line["from"], line["to"]) for line in site.audit(waiting, "status_changed")]
    assert changes == [("pending", "cancelled"), ("cancelled", "pending")]
    window.press("C-q")
    window.until_prompt()


def _cancel(window: Terminal, job_id: str) -> None:
    window.press("c")
    window.until(f"Cancel job {job_id}?")
    window.press("y")
    window.until_told(f"$ mam cancel {job_id}")
