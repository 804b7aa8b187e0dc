"""Why a job is not running: every front end gives the same answer to the same situation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from mam_core.config import load
from mam_core.doctor import jobs as doctor
from mam_core.doctor.ground import Ground, Look
from mam_core.mcp import reading as mcp
from mam_core.mcp.tool import Ground as Tools
from mam_core.operations.attention import attention, need_of
from mam_core.operations.audit_report import audit
from mam_core.operations.evidence import Services, gather, held_back
from mam_core.operations.listing import listing, query
from mam_core.operations.needs import Needs
from mam_core.operations.reports.job_markdown import report
from mam_core.operations.why import Explanation, Reasons, why
from mam_core.presence import Presence
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.sessions import Session, SessionFolder
from mam_core.stores.base import GateKind
from mam_tui.columns import BY_URGENCY, COLUMNS, sort_key
from mam_tui.graph.lines import GraphLine, Kind, drawing
from mam_tui.graph.text import Facts, cells_of
from mam_tui.laying import Look as CellLook
from mam_tui.model import Board, Order
from tests.support.clock import FakeClock
from tests.support.rows import every_row


class Situation(NamedTuple):
    """One job, and what everybody says of it."""

    name: str
    state: str  #: on the board, in the graph and in lists
    words: str  #: in a sentence, everywhere where there is room for one
    short: str  #: in a column
    can_run: bool
    served: bool
    inbox: str  #: the kind of the item; empty: it needs nobody
    helps: str = ""  #: the command
    then: str = ""  #: the second one, where it takes two


SITUATIONS = (
    Situation(
        "served", "queued", "a worker of label tmux:served will claim it", "", True, True, ""
    ),
    Situation("running", "blocked", "which is running", "after * running", True, True, ""),
    Situation(
        *("failed", "blocked", "which failed 2 min ago", "after * failed"),
        *(False, True, "cannot run", "mam retry *"),
    ),
    Situation(
        *("cancelled", "blocked", "which was cancelled 2 min ago", "after * cancelled"),
        *(False, True, "cannot run", "mam retry *"),
    ),
    Situation(
        *("far", "blocked", 'which cannot run: * "Do far" failed 2 min ago', "after * cannot run"),
        *(False, True, "cannot run", "mam retry *"),
    ),
    Situation("later", "blocked", "not before 2026-06-19T", "not before", True, True, ""),
    Situation(
        *("paused", "blocked", "group paused is paused since", "group paused paused: lunch"),
        *(True, True, "", "mam resume --group paused"),
    ),
    Situation("full", "blocked", "group full is full: 1 of 1 running", "is full", True, True, ""),
    Situation(
        "others",
        "blocked",
        "tmux:others with agent codex (its workers serve gemini)",
        "nobody serves",
        True,
        False,
        "nobody serves",
        "mam work --agent-session tmux:others --agents codex",
    ),
    Situation(
        *("nobody", "queued", "nobody serves label tmux:nobody with agent codex", "nobody serves"),
        *(True, False, "nobody serves", "mam spawn --agent-session tmux:nobody --agent codex"),
    ),
    Situation(
        "unknown",
        "queued",
        "with agent codexx; agent 'codexx' is unknown (did you mean codex?)",
        "nobody serves",
        *(True, False, "nobody serves", "mam edit ID --agent codex", "mam doctor"),
    ),
    Situation(
        "absent",
        "queued",
        "with agent absent; `mam-test-absent` is not installed here",
        "nobody serves",
        *(True, False, "nobody serves", "mam doctor"),
        "mam spawn --agent-session tmux:absent --agent absent",
    ),
)


class Stage:
    """A registry with one job in every situation, two minutes old."""

    def __init__(self, registry: Registry, folder: Path, clock: FakeClock) -> None:
        self.registry, self.path = registry, str(folder / "jobs")
        settings = folder / "agents.toml"
        settings.write_text(
            '[agents.codex]\ncommand = ["true"]\n[agents.absent]\ncommand = ["mam-test-absent"]\n'
        )
        self.config = load(str(settings))
        registry._slots = lambda: {"full": 1}
        self.ids: dict[str, str] = {}
        self.upstream: dict[str, str] = {}
        for name in ("served", "nobody", "others"):
            self.ids[name] = self._add(name)
        self.ids["unknown"] = self._add("unknown", agent="codexx")
        self.ids["absent"] = self._add("absent", agent="absent")
        for name in ("running", "failed", "cancelled", "far"):
            self.upstream[name] = self._first(name)
            self.ids[name] = self._add(name, after=[self.upstream[name]])
        self.ids["far"] = self._add("far", after=[self.ids["far"]])
        self.ids["later"] = self._add("later", not_before="+1h")
        self.ids["paused"] = self._add("paused", group="paused")
        registry.pause(GateKind.GROUP, "paused", why="lunch")
        self._add("full", group="full")
        registry.claim("tmux:full")
        self.ids["full"] = self._add("full", group="full")
        clock.pass_time(120)

    def _add(self, name: str, **more: object) -> str:
        request = {"prompt": f"Do {name}", "agent": "codex", "agent_session": f"tmux:{name}"}
        return self.registry.register([{**request, **more}])[0].job_id

    def _first(self, name: str) -> str:
        job_id = self._add(name)
        self.registry.claim(f"tmux:{name}")
        if name == "cancelled":
            self.registry.finish(job_id, Status.CANCELLED, attempt=1)
        elif name != "running":
            self.registry.finish(job_id, Status.ERROR, attempt=1, reason=Reason.EXIT)
        return job_id

    def sessions(self) -> Iterator[Session]:
        """On record, with a worker that lives: us."""
        for one in SITUATIONS:
            if one.name not in ("nobody", "unknown", "absent"):
                agent = "gemini" if one.name == "others" else "codex"
                label, node = f"tmux:{one.name}", self.registry.node
                yield Session(one.name, label, agent, "exec", "/", "/", "then", "ann", node)

    @property
    def services(self) -> Services:
        return Services(self.registry, self.path, self.config)

    def explained(self, name: str) -> Explanation:
        reasons = Reasons(self.registry, self.services)
        return why(self.registry, self.ids[name], reasons=reasons)

    def board(self) -> Board:
        """As the console has it: records, and what its slow side gathered."""
        jobs = listing(self.registry, query()).jobs
        made = Board(sort_key, Order(BY_URGENCY))
        made.tick(self.registry.clock.now())
        made.load(jobs)
        pairs = {(job.agent_session, job.agent) for job in jobs}
        made.gather(gather(self.registry, self.services, pairs, {"full", "paused"}))
        return made


@pytest.fixture
def stage(registry: Registry, tmp_path: Path, clock: FakeClock) -> Iterator[Stage]:
    made = Stage(registry, tmp_path, clock)
    folder = SessionFolder(made.path)
    with ExitStack() as workers:
        for session in made.sessions():
            folder.put(session)
            workers.enter_context(Presence.announce(folder, session.name))
        yield made


def test_everybody_says_the_same(stage: Stage) -> None:
    registry, now = stage.registry, stage.registry.clock.now()
    board = stage.board()
    jobs = [row.summary for row in board.rows.values() if row.summary is not None]
    drawn = drawing(jobs, lambda job: board.reasons.is_held(job, now))
    graph = Facts(board.rows, drawn.graph, board.reasons, now)
    inbox = Needs()
    inbox.load(jobs, now)
    inbox.put_stuck(map(need_of, board.reasons.stuck(jobs, now)))
    listed = attention(registry, services=stage.services)
    held = held_back(registry, stage.services, jobs)
    look = Look(Ground(registry, stage.path, stage.config))
    by_doctor = {one.what: one for one in (*doctor.served(look), *doctor.can_run(look))}
    audited = audit(look.ground, pause=lambda _: None)
    by_audit = {one.what: one.words for one in audited.findings}
    blocked = {job.job_id for job in audited.backlog.blocked.jobs}
    unserved = {job.job_id for job in audited.backlog.unserved.jobs}
    tools = Tools(registry, stage.path, stage.config, lambda: False)
    by_mcp = {row["job_id"]: row for row in mcp._list(tools, {})["jobs"]}

    with every_row() as rows:
        for one in SITUATIONS:
            with rows.row(one.name):
                job_id, first = stage.ids[one.name], stage.upstream.get(one.name, "")
                words, short = one.words.replace("*", first), one.short.replace("*", first)
                helps = one.helps.replace("*", first).replace("ID", job_id)
                commands = [command for command in (helps, one.then) if command]
                if one.name == "far":  # the job before it is in its way, the first is to blame
                    (before,) = registry.get(job_id).after
                    short = f"after {before} cannot run"

                told = stage.explained(one.name)
                sentences = "\n".join(told.sentences)
                assert words in sentences
                assert (told.why.can_run, told.why.served) == (one.can_run, one.served)
                assert [help.command for help in told.why.help] == commands or one.name == "full"
                assert all(command in sentences for command in commands)
                assert str(told.shown.state) == one.state
                assert "\n".join(mcp._get(tools, {"job_id": job_id})["why"]) == sentences
                page = report(registry, job_id, Reasons(registry, stage.services))
                assert words.partition('"')[0] in page

                row = board.rows[job_id]
                assert row.word == one.state
                cell = COLUMNS["event"].text(row, CellLook(now))
                assert short in cell if short else cell == ""
                line = GraphLine(Kind.NODE, job_id)
                cells = cells_of(line, graph, 30, 3, ascii_only=False)
                assert cells.face is not None
                assert cells.face.word == one.state
                assert short in cells.words
                assert graph.why(job_id) == told.why
                assert (job_id in held) is (one.state == "blocked")
                assert by_mcp[job_id].get("state", "queued") == one.state
                assert (job_id in blocked) is (one.state == "blocked")
                assert (job_id in unserved) is (one.state == "queued" and not one.served)

                needs = [need for need in inbox if job_id == need.job_id or need.about == first]
                if one.name == "far":
                    needs = [need for need in inbox if first and need.about == first]
                kinds = {str(need.kind) for need in needs if need.about}
                assert kinds == ({one.inbox} if one.inbox else set())
                for need in (need for need in needs if need.about):
                    assert need in listed
                    assert [help.command for help in need.help] == commands
                    assert need.jobs == (2 if one.name == "far" else 1)
                label = f"tmux:{one.name}"
                assert (label in by_doctor) is not one.served
                if not one.served:
                    assert words in by_doctor[label].words
                    assert all(command in by_doctor[label].words for command in commands)
                    assert words in by_audit[label]
                if not one.can_run:
                    oldest = next(need.job_id for need in needs if need.about == first)
                    assert helps in by_doctor[f"job {oldest}"].advice
                    assert "cannot run" in by_audit[f"job {oldest}"]


def test_what_changes_is_another_answer_everywhere(stage: Stage) -> None:
    """The first job is tried again, the group goes on, a session comes: nobody is needed."""
    registry, board = stage.registry, stage.board()
    failed = stage.upstream["failed"]
    registry.retry(failed)
    registry.resume(GateKind.GROUP, "paused")
    folder = SessionFolder(stage.path)
    folder.put(
        Session("nobody", "tmux:nobody", "codex", "exec", "/", "/", "t", "ann", registry.node)
    )
    with Presence.announce(folder, "nobody"):
        for job in listing(registry, query()).jobs:
            board.put(job)
        board.gather(stage.board().reasons.evidence or pytest.fail("nothing was gathered"))
        assert board.rows[stage.ids["failed"]].word == "blocked", "it waits for its turn"
        assert stage.explained("failed").why.can_run
        assert board.rows[stage.ids["paused"]].word == "queued"
        assert stage.explained("nobody").why.served
        abouts = {need.about for need in attention(registry, services=stage.services)}
        assert failed not in abouts
        assert not any("nobody" in about for about in abouts)
