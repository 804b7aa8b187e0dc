"""A job that a session of another host runs, seen from this console as if it ran here.

The other host is a worker on this machine: it has its name, and its output is where this
console does not look. Two machines with a network between them are in tests/integration/hosts.
"""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest

from mam_core import wiring
from mam_core.operations import elsewhere
from mam_core.operations.elsewhere import Elsewhere, NoAnswer
from mam_core.wiring import node_name
from mam_tui.screens.forms.answer_form import AnswerForm
from mam_tui.widgets.detail.panel import DetailPanel
from tests.console.session_story import talker, until_no_errand
from tests.console.staging import Opened, opened
from tests.support.brokers import embedded
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.sessions import SessionShop


async def test_its_screen_output_question_and_why_are_asked_of_its_host(
    shop: SessionShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = talker(shop)
    there = node_name()
    with embedded(shop.path, "nats").ensure_running():
        shop.spawn("asks", agent)
        job_id = shop.add(agent, "permission", agent_session="tmux:asks")
        eventually(lambda: "permission_required" in shop.names(job_id), "it asks")
        monkeypatch.setattr(elsewhere, "PATIENCE_SEC", 1.0)
        with closing(Elsewhere(str(shop.path), shop.config)) as line:
            eventually(lambda: _answers(shop, line, job_id), "its host listens to questions")
        # An answer that comes later than that is dropped, and counted.
        monkeypatch.setattr(elsewhere, "PATIENCE_SEC", PATIENCE_SEC)
        monkeypatch.setattr(wiring, "node_name", lambda: "oak")
        monkeypatch.setenv("DELEGATE_JOB_LOGS_DIR", str(tmp_path / "oaks-logs"))
        async with opened(str(shop.path), (140, 40)) as console:
            await console.press("g", "enter")
            await on_tab(console, "pane")
            await console.until_seen("stand-in agent: this one speaks both ways", f"on {there}")
            await on_tab(console, "output")
            await console.until_seen("control_request", f"on {there}")
            await on_tab(console, "why")
            await console.until_seen(f"{there} says so itself, where it runs")
            await on_tab(console, "artifacts")
            await console.until_seen("its files are there")
            await console.press("A")
            await console.until_on(AnswerForm)
            await console.until_seen("touch granted", "description")
            await console.press("escape")
            assert console.desk.others.dropped == 0
    until_no_errand()


def _answers(shop: SessionShop, line: Elsewhere, job_id: str) -> bool:
    with suppress(NoAnswer):
        return bool(line.screen(shop.registry, shop.job(job_id)))
    return False


async def on_tab(console: Opened, name: str) -> None:
    console.app.screen.query_one(DetailPanel).switch(name)
    await console.pilot.pause()
