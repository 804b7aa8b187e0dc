"""Twenty agents, three need me, one was lost: what happened at 14:05?

One agent is real, in a session of tmux with its worker. The other nineteen are what the
registry's own verbs leave behind, with a clock that stood where the story was: ten minutes
of it cost nothing, and the sweep that takes the lost one is the real one.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.clock import SystemClock
from mam_core.leases import LeaseTerms
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.work.sweep import Act, Sweep
from tests.console.e2e.conftest import AGENT, command
from tests.console.session_story import talker
from tests.support.sessions import SessionShop
from tests.support.terminal import Terminal

WORKING = 16
ASKED = "python3 -c 'print(6*7)' && touch granted"  #: by the real one, as it was recorded
QUESTION = "Which of the two calendars is right?"
FAILED = "test -s stars.txt failed"
HELD = LeaseTerms("worker-1", 7200.0)
#: Of a worker that never came back.
BRIEF = LeaseTerms("worker-2", 240.0)
MINUTE = 60.0


class Earlier(SystemClock):
    """The machine's clocks, so many seconds ago."""

    ago = 0.0

    def now(self) -> float:
        return super().now() - self.ago

    def since_boot(self) -> float:
        return super().since_boot() - self.ago


class Fleet(NamedTuple):
    """Who has a part in the story."""

    asking: str  #: the real one
    curious: str
    checked: str
    lost: str
    before: str  #: as a clock on the wall shows it, two minutes before the loss


@pytest.mark.usefixtures("known")
def test_what_happened_at_14_05(site: SessionShop, window: Terminal) -> None:
    fleet = _happened(site)
    window.run("mam")
    window.until(
        *("mam board", "! 4 need you"),
        *(f"{WORKING} working", "2 waiting", "1 queued", "1 error"),
    )
    _answered(site, window, fleet)
    _looked_around(window, fleet)
    _read_why(window, fleet)
    _as_it_was(site, window, fleet)
    window.press("C-q")
    window.until_prompt()


def _happened(site: SessionShop) -> Fleet:
    agent = talker(site)
    site.spawn("asks", agent)
    asking = site.add(agent, "permission", agent_session="tmux:asks")
    clock = Earlier()
    registry, now = site.registry, time.time()
    before = (now // MINUTE - 5) * MINUTE
    registry.clock = clock
    clock.ago = now - (before - 4 * MINUTE)
    working = [_begun(site, f"Count part {n} of the sky", f"tmux:a{n}") for n in range(WORKING)]
    curious = _begun(site, "Set the calendar right", "tmux:curious")
    checked = _begun(site, "List the stars", "tmux:checked")
    clock.ago = now - (before - MINUTE)
    lost = _begun(site, "Bake the documentation", "tmux:gone", BRIEF)
    registry.publish(lost, "progress", detail="half of it is baked")
    clock.ago = now - (before + 2 * MINUTE)
    assert Sweep(registry).once() == []  # its lease still holds
    clock.ago = now - (before + 4 * MINUTE)
    assert [(one.job_id, one.act) for one in Sweep(registry).once()] == [(lost, Act.REQUEUED)]
    registry.finish(checked, Status.ERROR, attempt=1, reason=Reason.VALIDATION, detail=FAILED)
    clock.ago = 0.0
    for job_id in (*working, curious):
        registry.heartbeat(job_id, HELD)
    _says(registry, curious, AgentState.WAITING, "dialog", QUESTION)
    return Fleet(asking, curious, checked, lost, time.strftime("%H:%M", time.localtime(before)))


def _begun(site: SessionShop, prompt: str, label: str, lease: LeaseTerms = HELD) -> str:
    job_id = site.add(AGENT, prompt, agent_session=label)
    claimed = site.registry.claim(label, lease=lease)
    assert claimed is not None
    assert claimed.job_id == job_id
    _says(site.registry, job_id, AgentState.WORKING, "turn", "")
    return job_id


def _says(registry: Registry, job_id: str, state: AgentState, rule: str, words: str) -> None:
    sign = Sign(state, Channel.HOOK, rule, registry.clock.now(), words)
    registry.publish(job_id, "state", detail=words, data=sign.to_dict())


def _answered(site: SessionShop, window: Terminal, fleet: Fleet) -> None:
    """In their order, in their own words; the first is answered where it stands."""
    window.press("4")
    seen = window.until("mam attention", ASKED, QUESTION, FAILED)
    places = [seen.index(one) for one in (fleet.asking, fleet.curious, fleet.checked)]
    assert places == sorted(places)
    # The lost one goes on by itself, once somebody serves its label again.
    window.until_in_line(fleet.lost, "nobody serves")
    window.press("Enter")
    window.until(f"Job {fleet.asking} asks", ASKED, "y yes")
    window.press("y")
    window.until("! 3 need you")
    window.until_gone(fleet.asking)
    site.until_status(fleet.asking, Status.COMPLETED)
    assert list(site.workdir.glob("granted-*"))


def _looked_around(window: Terminal, fleet: Fleet) -> None:
    window.press("3")
    window.until("mam fleet", "asks", f"{fleet.asking} - completed", "! 3 need you")
    window.press("5")
    window.until_in_line("tmux:a0", "▶")
    window.until("mam gantt", "by session", "! 3 need you")


def _read_why(window: Terminal, fleet: Fleet) -> None:
    """Among all that ever were, the lost one."""
    window.press("7")
    window.until("mam history 20 jobs")
    window.press("/")
    window.type("documentation")
    window.press("Enter")
    window.until_in_line("queued", fleet.lost, "lost")
    window.until_gone(fleet.curious)
    window.press("Enter")
    window.until(f"mam history > {fleet.lost}")
    window.until("lost: the lease of worker-2 has expired, and it had started nothing")
    window.press("Escape")
    window.until_gone("[timeline]")
    window.press("1")
    window.until("mam board", "[timeline]", "? keys")


def _as_it_was(site: SessionShop, window: Terminal, fleet: Fleet) -> None:
    command(window, f"at {fleet.before}")
    window.until("PAST", fleet.before, "nothing can be changed here", f"{WORKING + 3} working")
    window.until_in_line("working", fleet.lost, "Bake the documentation")
    window.press("2")
    window.until("mam sessions", "PAST", "kept nowhere")
    window.press("d")  # all of them, and no empty screen
    window.until_in_line("working", "gone", fleet.lost)
    window.press("5")
    window.until("mam gantt", "to then", "PAST")
    window.until_in_line("tmux:gone", "▶")  # nobody knew then that it would be lost
    window.press("1")
    window.until_in_line("working", fleet.lost, "Bake the documentation")
    window.press("c")
    window.until("this is the past")
    assert site.job(fleet.lost).status is Status.PENDING
    window.press("Escape")
    window.until_gone("PAST")
    window.until_in_line("queued", fleet.lost)
