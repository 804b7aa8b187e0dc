"""What only the disk knows of a need: the whole question, or the words of an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.agents.screens import Meaning
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.config import Config, load
from mam_core.operations.attention import attention
from mam_core.operations.elsewhere import Elsewhere
from mam_core.operations.need_detail import NeedDetail, need_detail, why_of
from mam_core.operations.panes import Capture, PaneFact, Panes
from mam_core.records import Job, Reason, Status
from mam_core.registry import Registry
from tests.support.jobs import WORKER, running
from tests.support.screens import screen

#: No job here is another host's: nobody is asked.
NOBODY = Elsewhere("/nowhere", load())


@pytest.fixture
def panes(tmp_path: Path) -> Iterator[Panes]:
    made = Panes(str(tmp_path / "jobs"), load())
    yield made
    made.close()


def test_a_question_is_read_whole(registry: Registry, panes: Panes) -> None:
    job = running(registry, lease=WORKER)
    sign = Sign(AgentState.WAITING, Channel.HOOK, "PermissionRequest", 1.0, "May I?")
    registry.publish(job.job_id, "state", detail="May I?", data=sign.to_dict())
    (need,) = attention(registry)
    (asked,) = need_detail(registry, need, panes, NOBODY).asked
    assert asked.question.words == "May I?"
    assert not why_of(registry, [need])
    registry.finish(job.job_id, Status.COMPLETED, attempt=1)
    assert need_detail(registry, need, panes, NOBODY) == NeedDetail()


class OnePane(Panes):
    """A pane that shows a recorded dialog."""

    def __init__(self, config: Config, job: Job) -> None:
        super().__init__("/nowhere", config)
        self._fact = PaneFact(
            *("%1", "a", 12, False, None, None, "", "tmux:a", "mine"),
            *(job.job_id, job.attempt, 80, 24, 0.0, 0.0),
        )

    def facts(self) -> list[PaneFact]:
        return [self._fact]

    def plain(self, pane_id: str) -> Capture:
        return Capture(tuple(screen("claude", "dialogs.tmux.01-trust")), (0, 0), "")


def test_the_choices_of_a_renamed_agent_are_those_of_its_program(
    registry: Registry, tmp_path: Path
) -> None:
    place = tmp_path / "mam.toml"
    place.write_text('[agents.mine]\nmode = "interactive"\ncommand = ["/opt/claude", "--fast"]\n')
    job = running(registry, lease=WORKER, agent="mine")
    sign = Sign(AgentState.WAITING, Channel.SCREEN, "trust dialog", 1.0, "Do you trust it?")
    registry.publish(job.job_id, "state", detail="Do you trust it?", data=sign.to_dict())
    (need,) = attention(registry)
    (asked,) = need_detail(registry, need, OnePane(load(str(place)), job), NOBODY).asked
    assert [choice.means for choice in asked.choices] == [Meaning.YES, Meaning.NO]


def test_an_error_says_why_until_it_is_tried_again(registry: Registry, panes: Panes) -> None:
    job = running(registry)
    registry.finish(job.job_id, Status.ERROR, attempt=1, reason=Reason.EXIT, detail="it left: 3")
    (need,) = attention(registry)
    assert need_detail(registry, need, panes, NOBODY).detail == "it left: 3"
    assert why_of(registry, [need]) == {job.job_id: "it left: 3"}
    registry.retry(job.job_id)
    assert registry.claim(need.session) is not None
    assert need_detail(registry, need, panes, NOBODY) == NeedDetail()
    assert not why_of(registry, [need, need._replace(job_id="gone")])
