"""Jobs for the detail panel, made with the registry's own verbs: one tried twice, one hostile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.audit import AuditEvent
from mam_core.config import Config, load
from mam_core.leases import LeaseTerms
from mam_core.messages import MessageKind, Stage
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from tests.support.clock import FakeClock
from tests.support.handles import close_later

WORKER = LeaseTerms("worker-1", 30.0)
#: Escape sequences, a title, a link, markup, a direction override, a bell, a C1 control.
HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x1b]52;c;ZXZpbA==\x07 [red]x[/] [@click=app.quit]q[/] "
    "\u202eevil\u202c \x07\x9b2J \x1bP1;2q\x1b\\ a\tb\r c\u200bd 별 e\u0301"
)


def registry_in(folder: Path, clock: FakeClock) -> Registry:
    registry = close_later(open_registry(str(folder / "jobs"), config=load()))
    registry.clock = clock
    return registry


def desk_on(folder: Path, clock: FakeClock, config: Config | None = None) -> Desk:
    return Desk(str(folder / "jobs"), config or load(), clock=clock.now)


def quiet_bridge(desk: Desk) -> Any:
    """One that listens to the folder and starts no broker."""
    return lambda ring: Bridge(desk.registry_path, desk.config, ring, with_duties=False)


def output_of(registry: Registry, job_id: str, attempt: int) -> Path:
    """Where an attempt's output stands; its folder is made."""
    folder = Path(registry.store.audit.path, job_id, "attempts", str(attempt))
    for part in (folder.parent, folder):
        part.mkdir(mode=0o700, exist_ok=True)
    return folder / "output.log"


def note(registry: Registry, job_id: str, event: AuditEvent, **facts: Any) -> None:
    line = registry.note(event, **facts)
    registry.store.audit.append(job_id, line.to_dict(job_id))


def two_attempts(registry: Registry, clock: FakeClock, workdir: Path, **fields: Any) -> str:
    """It failed once, was retried by a person, and runs again."""
    asked = {
        "prompt": "Count the stars\n\n  and write them down",
        "agent": "claude-code",
        "agent_session": "tmux:alpha",
        "workdir": str(workdir),
        "expected_artifacts": ["stars.txt", "missing.md"],
        "validate": "test -s stars.txt",
        **fields,
    }
    job_id = registry.register([asked])[0].job_id
    first_attempt(registry, clock, job_id, workdir)
    clock.pass_time(60)
    registry.retry(job_id)
    clock.pass_time(5)
    assert registry.claim("tmux:alpha", lease=WORKER) is not None
    note(registry, job_id, AuditEvent.ATTEMPT_STARTED, attempt=2, workdir=str(workdir))
    tell(registry, job_id, AgentState.WORKING, clock, "counting")
    clock.pass_time(20)
    tell(registry, job_id, AgentState.WAITING, clock, "May I write stars.txt?")
    message = registry.send(job_id, MessageKind.ANSWER, "yes")
    clock.pass_time(1)
    registry.receipt(job_id, message.n, Stage.ACCEPTED, attempt=2)
    registry.publish(
        job_id, "progress", detail="half of the sky", data={"progress": 50, "tool": "Bash"}
    )
    output_of(registry, job_id, 2).write_bytes(
        b"second try\n\x1b[32mgreen\nstill green\x1b[0m\nno end"
    )
    stars = workdir / "stars.txt"
    stars.write_text("many\n")
    os.utime(stars, (clock.now() - 3, clock.now() - 3))
    return job_id


def first_attempt(registry: Registry, clock: FakeClock, job_id: str, workdir: Path) -> None:
    clock.pass_time(30)
    assert registry.claim("tmux:alpha", lease=WORKER) is not None
    note(registry, job_id, AuditEvent.ATTEMPT_STARTED, attempt=1, workdir=str(workdir))
    registry.publish(job_id, "started", detail="off we go")
    tell(registry, job_id, AgentState.WORKING, clock, "")
    clock.pass_time(185)
    note(
        registry,
        job_id,
        AuditEvent.ATTEMPT_ENDED,
        attempt=1,
        exit_code=3,
        elapsed_sec=185.0,
        cost=0.25,
        tokens={"input": 1200, "output": 300},
        checks=[
            {
                "what": "test -s stars.txt",
                "passed": False,
                "words": "the validate command failed",
                "output": "no stars",
            }
        ],
    )
    output_of(registry, job_id, 1).write_bytes(b"first try\n")
    registry.finish(
        job_id, Status.ERROR, attempt=1, reason=Reason.EXIT, detail="the agent left with 3"
    )


def tell(registry: Registry, job_id: str, state: AgentState, clock: FakeClock, words: str) -> None:
    sign = Sign(state, Channel.STREAM, "turn", clock.now(), words)
    registry.publish(job_id, "state", detail=words, data=sign.to_dict())


def hostile(registry: Registry, clock: FakeClock, workdir: Path) -> str:
    """Everything that a stranger can write, as nasty as it can be."""
    # No event repeats the prompt: that would be hidden, and what is nasty in it as well.
    prompt = f"{HOSTILE} asked\n" * 8 + "x" * (1024 * 1024 - 2000)
    said = f"{HOSTILE} said"
    asked = {
        "prompt": prompt,
        "agent": "claude-code",
        "agent_session": "tmux:alpha",
        "workdir": str(workdir),
        "expected_artifacts": ["a[red]b.txt"],
        "validate": "true # [red]x[/]",
        "auth_token": "a-token-of-the-job",
    }
    job_id = registry.register([asked])[0].job_id
    assert registry.claim("tmux:alpha", lease=WORKER) is not None
    note(registry, job_id, AuditEvent.ATTEMPT_STARTED, attempt=1, workdir=str(workdir))
    tell(registry, job_id, AgentState.WAITING, clock, said)
    registry.publish(job_id, "progress", detail=said, data={said: said, "b": [said]})
    note(registry, job_id, AuditEvent.STALE, attempt=1, why=HOSTILE)
    output_of(registry, job_id, 1).write_bytes(
        HOSTILE.encode("utf-8", "surrogatepass") + b"\n\xff\xfe\x00binary\n" + b"y" * 90_000 + b"\n"
    )
    (workdir / "a[red]b.txt").write_text("x")
    return job_id
