"""What can be done to sessions and said to agents from the console, on real ones."""

from __future__ import annotations

import pytest
from textual.widgets import Input, Static

from mam_core.records import Status
from mam_tui.screens.confirm import Confirm
from mam_tui.screens.forms.answer_form import AnswerForm
from mam_tui.screens.forms.say_form import SayForm
from mam_tui.screens.forms.spawn_form import SpawnForm
from mam_tui.screens.forms.tick import Tick
from mam_tui.screens.talk import Talk
from tests.console.detail_story import HOSTILE
from tests.console.session_story import Sight, in_terminal, looking, talker
from tests.support.repositories import git
from tests.support.sessions import SessionShop, repository


async def opened(sight: Sight, kind: type) -> None:
    await sight.until(lambda: isinstance(sight.app.screen, kind), f"{kind.__name__} is open")


async def fill(sight: Sight, **texts: str) -> None:
    for name, text in texts.items():
        sight.app.screen.query_one(f"#{name}", Input).value = text
    await sight.pilot.pause()


async def test_sessions_are_started_by_a_form_and_stopped_after_a_question(
    shop: SessionShop,
) -> None:
    """What went wrong stands in the form, with all that was filled in; a worktree each."""
    shop.agent("good", "behaves")
    place = repository(shop.folder / "repo")
    async with looking(shop) as sight:
        await sight.pilot.press("s")
        await opened(sight, SpawnForm)
        await sight.pilot.press("ctrl+s")
        await sight.until_seen("still missing: agent", "here:", "good")
        await fill(sight, agent="good", label="w", count="2", workdir="/no/such/folder")
        sight.app.screen.query_one(Tick).toggle()
        await sight.until_seen("[x]", "--agent-session tmux:w --agent good --count 2")
        await sight.pilot.press("ctrl+s")
        await sight.until_deed()
        await opened(sight, SpawnForm)
        await sight.until_seen("there is no folder /no/such/folder")
        assert sight.app.screen.query_one("#label", Input).value == "tmux:w"
        await fill(sight, workdir=str(place))
        await sight.pilot.press("ctrl+s")
        deed = await sight.until_deed(2)
        assert deed.ok
        assert deed.command == (
            f"mam spawn --agent-session tmux:w --agent good --count 2 --workdir {place} --worktree"
        )
        await sight.until(lambda: sight.states() == {"w-1": "free", "w-2": "free"}, "both are up")
        assert {"mam/w-1", "mam/w-2"} <= set(
            git(place, "branch", "--list").replace("+", "").split()
        )
        await stopped(sight, "w-1")
        await sight.until(lambda: sight.states() == {"w-2": "free"}, "one is left")


async def stopped(sight: Sight, name: str) -> None:
    """The key that asks does not confirm, and enter keeps."""
    await sight.on(name)
    for refusal in ("x", "enter", "escape"):
        await sight.pilot.press("x")
        await opened(sight, Confirm)
        await sight.pilot.press(refusal)
        if refusal == "x":
            await opened(sight, Confirm)
            await sight.pilot.press("n")
    assert name in sight.states()
    before = len(sight.desk.deeds)
    await sight.pilot.press("x")
    await opened(sight, Confirm)
    await sight.until_seen(f"Stop session {name}?")
    await sight.pilot.press("y")
    deed = await sight.until_deed(before + 1)
    assert (deed.ok, deed.command) == (True, f"mam stop {name}")


async def test_a_question_is_answered_and_an_agent_is_told_something(shop: SessionShop) -> None:
    """All that it would do is shown; one key opens it, and another one says yes (H5)."""
    agent = talker(shop)
    shop.spawn("asks", agent)
    job_id = shop.add(agent, "permission", agent_session="tmux:asks")
    async with looking(shop) as sight:
        await sight.until(lambda: sight.states() == {"asks": "waiting"}, "it waits")
        await sight.pilot.press("A")
        await opened(sight, AnswerForm)
        await sight.until_seen("command: python3 -c 'print(6*7)' && touch granted", "y yes")
        await sight.pilot.press("A", "enter")
        await opened(sight, AnswerForm)
        await sight.pilot.press("y")
        deed = await sight.until_deed()
        assert deed.ok, deed
        assert deed.command.startswith(f"mam answer {job_id} --question ")
        assert deed.command.endswith(" y")
        shop.until_status(job_id, Status.COMPLETED)
        assert list(shop.workdir.glob("granted-*"))
        await sight.until(lambda: sight.states() == {"asks": "free"}, "it is free")
        await sight.pilot.press("m")
        await sight.until_told("it has no job just now")


@pytest.mark.release
async def test_a_dialog_on_a_screen_is_answered_and_a_job_is_talked_to(shop: SessionShop) -> None:
    """By what the board can call for a job: the screen is shown where nothing else tells it."""
    agent = in_terminal(shop)
    shop.spawn("live", agent)
    job_id = shop.add(agent, "ask May I write?\nwork 60", agent_session="tmux:live")
    async with looking(shop) as sight:
        talk = Talk(sight.app)
        await sight.until(lambda: sight.states() == {"live": "waiting"}, "it waits")
        talk.answer(job_id)
        await opened(sight, AnswerForm)
        await sight.until_seen("May I write?", "1. Yes")
        await sight.until_seen("1-9 choose")
        await sight.pilot.press("1")
        deed = await sight.until_deed()
        assert (deed.ok, deed.command) == (True, f"mam answer {job_id} --question 1 1")
        talk.say(job_id)
        await opened(sight, SayForm)
        await sight.pilot.press("h", "i", "ctrl+j", "you", "enter")
        deed = await sight.until_deed(2)
        assert deed.command == f"mam say {job_id} -"
        await sight.until(lambda: sight.states() == {"live": "working"}, "it works")
        await sight.pilot.press("X")
        await opened(sight, Confirm)
        await sight.until_seen(f"{job_id}: ended, and waits for another worker")
        await sight.pilot.press("y")
        deed = await sight.until_deed(3)
        assert (deed.ok, deed.command) == (True, "mam stop live --now")
        await sight.until_seen("there are no agent sessions yet")
        assert shop.job(job_id).status is Status.PENDING


async def test_a_console_that_only_looks_does_nothing_and_says_why(shop: SessionShop) -> None:
    shop.spawn("one", shop.agent("good", "behaves"))
    async with looking(shop, read_only=True) as sight:
        await sight.until_seen("READ-ONLY")
        await sight.until(lambda: sight.states() == {"one": "free"}, "it is seen")
        for key, words in (
            ("s", "spawn"),
            ("a", "attach"),
            ("m", "say"),
            ("A", "answer"),
            ("x", "stop"),
            ("X", "stop now"),
            ("r", "bring back"),
        ):
            await sight.pilot.press(key)
            await sight.until_told(f"{words}: this console is read-only")
        assert sight.app.screen is sight.view
        assert not sight.desk.deeds


async def test_a_terminal_that_cannot_be_given_away_is_said(shop: SessionShop) -> None:
    shop.spawn("one", shop.agent("good", "behaves"))
    async with looking(shop) as sight:
        await sight.on("one")
        await sight.pilot.press("a")
        await sight.until_told("`mam attach one` works in another one")
        Talk(sight.app).attach("no-such")
        await sight.until_told("there is no session no-such in tmux")


async def test_a_hostile_question_is_only_text(shop: SessionShop) -> None:
    """Whole, harmless, and no markup."""
    from mam_core.operations.answer import OpenQuestion
    from mam_core.operations.asked import Asked

    async with looking(shop, (60, 20)) as sight:
        question = OpenQuestion("q1", HOSTILE, {HOSTILE: HOSTILE + "x" * 30_000, "n": [HOSTILE]})
        await sight.app.push_screen(AnswerForm(HOSTILE, [Asked(question)]))
        told = str(sight.app.screen.query_one(".question", Static).render())
        assert "[@click=app.quit]" in told
        assert "characters that are not shown here" in told
        assert not set(told) & set("\x1b\x07\x9b\u202e\u200b")
        await sight.pilot.press("escape")
        await sight.until(lambda: sight.app.screen is sight.view, "nothing was answered")
