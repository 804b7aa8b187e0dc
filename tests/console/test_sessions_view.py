"""The view of sessions: what is seen of real sessions in a real tmux server, by few looks."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from mam_core.leases import LeaseTerms
from mam_core.operations.panes import Panes
from mam_core.safe_text import safe
from mam_tui.desk import Desk
from mam_tui.panes import PaneWatch, source
from mam_tui.screens.notice import Notice
from mam_tui.widgets.detail.pane import Sight as PaneSight
from tests.console.at_rest import is_asleep
from tests.console.detail_story import HOSTILE
from tests.console.session_story import Sight, in_terminal, looking, talker
from tests.support.live import AGENT
from tests.support.patience import eventually
from tests.support.sessions import SessionShop


async def test_without_sessions_it_says_what_to_press(shop: SessionShop) -> None:
    shop.agent("good", "behaves")
    async with looking(shop, (60, 20)) as sight:
        await sight.until_seen("there are no agent sessions yet", "s  starts one")
        await sight.pilot.press("x", "a", "m", "A", "X", "r")
        await sight.until_told("there is no session here")
        assert not sight.desk.deeds
        await sight.pilot.press("escape")
        await sight.until(lambda: sight.app.screen is sight.app.board, "back on the board")


async def test_without_tmux_it_says_how_to_get_it(
    shop: SessionShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.settle()
    folder = shop.folder / "bin"
    folder.mkdir()
    with monkeypatch.context() as without:
        without.setenv("PATH", str(folder))
        assert shutil.which("tmux") is None
        async with looking(shop, (80, 24)) as sight:
            await sight.until_seen("tmux is not here", "apt install tmux", "mam work")


async def test_everything_about_a_session_is_seen(shop: SessionShop) -> None:
    """States by glyph and word, the job, the queue, memory, the question, the screen."""
    agent = talker(shop)
    shop.spawn("asks", agent)
    shop.spawn("pool", agent, "--count", "2")
    job_id = shop.add(agent, "permission", agent_session="tmux:asks")
    shop.add(agent, "later", agent_session="tmux:asks")
    async with looking(shop, (200, 30)) as sight:
        await sight.until(lambda: sight.states().get("asks") == "waiting", "it waits")
        rows = {row.name: row for row in sight.desk.sessions.rows}
        assert sight.states() == {"asks": "waiting", "pool-1": "free", "pool-2": "free"}
        assert rows["asks"].job_id == job_id
        assert rows["asks"].seen.queued == 1
        await sight.until_seen("◆ waiting", "○ free", job_id, "tmux:pool", "MB", "touch granted")
        await sight.until_seen("stand-in agent: this one speaks both ways")
        await sight.until(lambda: sight.desk.sessions.rows[0].cpu is not None, "CPU is known")
        await sight.pilot.resize_terminal(60, 20)
        await sight.until_seen("◆ waiting", "asks", "JOB", "QUEUE")
        assert "FOLDER" not in sight.text()
        assert await hidden_is_idle(sight)


async def hidden_is_idle(sight: Sight) -> bool:
    """While something else is on the screen nobody looks; back again somebody does."""
    rounds, panes = sight.view.watch_sessions.rounds, sight.view.watch_panes.rounds
    sight.app.push_screen(Notice(["something else"]))
    await sight.until(lambda: sight.app.screen is not sight.view, "another screen is on top")
    await sight.until(lambda: is_asleep(rounds) and is_asleep(panes), "the last look is over")
    before = rounds.looks, panes.looks
    await sight.pilot.pause(1.5)
    assert (rounds.looks, panes.looks) == before
    await sight.pilot.press("enter")
    await sight.until(lambda: rounds.looks > before[0] and panes.looks > before[1], "looks again")
    return True


async def test_no_process_is_started_for_a_look(shop: SessionShop) -> None:
    """One client of tmux serves the table, the screen below it and the detail panel."""
    shop.spawn("quiet", shop.agent("good", "behaves"))
    async with looking(shop) as sight:
        await sight.until(lambda: sight.states() == {"quiet": "free"}, "it is seen")
        glance: Any = sight.desk.panes._glance
        client, started = glance.client_pid, processes_started()
        sessions, panes = sight.view.watch_sessions.rounds, sight.view.watch_panes.rounds
        before = sessions.looks, panes.looks
        await sight.until(
            lambda: sessions.looks > before[0] + 1 and panes.looks > before[1] + 5, "many looks"
        )
        assert glance.client_pid == client
        assert started == processes_started()


def processes_started() -> int:
    """By this process, since it began: what it had to wait for, and what it has now."""
    return len(psutil.Process().children())


async def test_a_server_that_dies_is_seen_and_its_sessions_come_back(shop: SessionShop) -> None:
    shop.spawn("one", shop.agent("good", "behaves"))
    async with looking(shop) as sight:
        await sight.until(lambda: sight.states() == {"one": "free"}, "it is seen")
        shop.tmux("kill-server")
        await sight.until(lambda: sight.states() == {"one": "gone"}, "it is gone")
        await sight.until_seen("✗ gone", "bring back", "it has no screen now")
        await sight.pilot.press("a")
        await sight.until_told("tmux shows nothing of it; r brings it back")
        await sight.pilot.press("r")
        deed = await sight.until_deed()
        assert (deed.ok, deed.command) == (True, "mam restore")
        await sight.until(lambda: sight.states() == {"one": "free"}, "it is back")


async def test_hostile_names_titles_and_screens_do_nothing(shop: SessionShop) -> None:
    """A foreign session with our mark, a damaged file, a screen full of escape sequences (O7)."""
    agent = in_terminal(shop)
    shop.spawn("victim", agent)
    words = "".join(char for char in HOSTILE if char not in "\r\n\t")
    shop.tmux("select-pane", "-t", "=victim:", "-T", "title [red] \u202e evil")
    (Path(shop.kept.path) / "bad.json").write_text(words)
    (Path(shop.kept.path) / "bad.json").chmod(0o600)
    job_id = shop.add(
        agent, f"say {words}\nask [@click=app.quit]Really?[/]", agent_session="tmux:victim"
    )
    async with looking(shop, (200, 40)) as sight:
        await sight.until(lambda: "bad" in sight.states(), "the damaged one is listed")
        await sight.on("victim")
        await sight.until_seen("‼ damaged", "[@click=app.quit]Really?[/]")
        text = sight.text()
        assert safe(text, keep="\n") == text
        assert job_id


async def test_panes_are_told_only_when_they_change(shop: SessionShop) -> None:
    """Several in one round trip; nothing at all when nobody looks."""
    shop.spawn("a", in_terminal(shop))
    shop.spawn("b", AGENT)
    panes = Panes(str(shop.path), shop.config)
    told: list[Mapping[str, PaneSight]] = []
    watch = PaneWatch(panes, told.append, pace_sec=0.02)
    try:
        ids = [fact.pane_id for fact in panes.facts()]
        watch.look_at(ids)
        eventually(lambda: {one for news in told for one in news} == set(ids), "both are seen")
        looks, count = watch.rounds.looks, len(told)
        eventually(lambda: watch.rounds.looks > looks + 5, "it looks on")
        assert len(told) <= count + 1  # a worker that was still starting
        shop.add(AGENT, "say news", agent_session="tmux:a")
        eventually(lambda: any("news" in line for line in lines(told, ids[0])), "it is told")
        watch.look_at(())
        looks = watch.rounds.looks
        eventually(lambda: not watch.rounds._is_watched, "nobody looks")
        assert watch.rounds.looks <= looks + 1
    finally:
        watch.close()
        panes.close()


def lines(told: list[Mapping[str, PaneSight]], pane_id: str) -> list[str]:
    return [line for news in told if pane_id in news for line in news[pane_id].lines]


async def test_the_screen_of_a_job_is_found_by_its_id(shop: SessionShop) -> None:
    agent = in_terminal(shop)
    shop.spawn("a", agent)
    job_id = shop.add(agent, "ask May I?", agent_session="tmux:a")
    waits = shop.add(agent, "later", agent_session="tmux:a")
    elsewhere = shop.add(agent, "later", agent_session="nowhere")
    desk = Desk(str(shop.path), shop.config)
    look = source(desk)
    try:
        eventually(lambda: "May I?" in "\n".join(look(shop.registry, job_id).lines), "it is seen")
        assert look(shop.registry, job_id).words == "session a"
        assert "waits in the queue" in look(shop.registry, waits).words
        shop.registry.claim("nowhere", lease=LeaseTerms("another:1:2:0", 30.0))
        assert "in no session of this host" in look(shop.registry, elsewhere).words
    finally:
        desk.close()
