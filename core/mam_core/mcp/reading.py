"""Tools that look: which jobs there are, what became of one, what needs somebody."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from mam_core.errors import InvalidField
from mam_core.mcp.tool import Argument, Ground, Tool
from mam_core.operations.agents import choices
from mam_core.operations.answer import in_full
from mam_core.operations.attention import attention
from mam_core.operations.evidence import held_back, services_of
from mam_core.operations.known_names import strange_filter
from mam_core.operations.listing import listing, query, shown_of
from mam_core.operations.logs import history
from mam_core.operations.output import attempts_with_output, read_output, without_escapes
from mam_core.operations.record import record
from mam_core.operations.why import Reasons, why
from mam_core.pace import paced
from mam_core.records import Job, Status, check_job_id
from mam_core.sessions import SessionFolder
from mam_core.summaries import Summary

_MOST_ROWS = 200
_MOST_LINES = 400
_OUTPUT_BYTES = 48 * 1024
_MOST_PROMPT = 4000
#: Clients give a call up after a minute; this one answers before.
MOST_WAIT_SEC = 50.0
_LOOK_SEC = 0.2
_STATUSES = tuple(str(status) for status in Status)

JOB_ID = Argument("string", "the id of the job", required=True)


def _list(ground: Ground, given: Mapping[str, Any]) -> Any:
    registry = ground.registry
    which = query(
        given.get("status", ()),
        agent_session=given.get("agent_session"),
        group=given.get("group"),
        agent=given.get("agent"),
        text=given.get("text"),
    )
    found = listing(registry, which)
    most = given.get("limit", 50)
    jobs = found.jobs[-most:]
    states = {job_id: str(one.state) for job_id, one in shown_of(registry, jobs).items()}
    held = held_back(registry, services_of(registry, ground.registry_path, ground.config), jobs)
    states |= {job.job_id: "blocked" for job in jobs if job.job_id in held}
    rows = [_row(job, states.get(job.job_id, "")) for job in jobs]
    told = {
        "jobs": rows,
        "left_out": len(found.jobs) - len(rows),
        "unreadable": [row.job_id for row in found.unreadable[:_MOST_ROWS]],
    }
    warnings = [removal] if (removal := registry.store.removal()) else []
    if not rows:
        warnings += strange_filter(registry, ground.registry_path, ground.config, given)
    if warnings:
        told["warnings"] = warnings
    return told


def _row(job: Summary, state: str) -> dict[str, Any]:
    known: dict[str, Any] = {
        "job_id": job.job_id,
        "status": str(job.status),
        "state": state,
        "agent": job.agent,
        "agent_session": job.agent_session,
        "group": job.group,
        "attempt": job.attempt,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "reason": str(job.reason) if job.reason else None,
        "prompt": job.head,
    }
    return {name: value for name, value in known.items() if value not in (None, "")}


def _get(ground: Ground, given: Mapping[str, Any]) -> Any:
    job_id = given["job_id"]
    found = record(ground.registry, job_id)
    values = dict(found.values)
    prompt = str(values.get("prompt") or "")
    if len(prompt) > _MOST_PROMPT:
        values["prompt"] = prompt[:_MOST_PROMPT] + "…"
        values["prompt_chars"] = len(prompt)
    told: dict[str, Any] = {"record": values}
    if found.notice:
        told["notice"] = found.notice
    else:
        services = services_of(ground.registry, ground.registry_path, ground.config)
        explained = why(ground.registry, job_id, reasons=Reasons(ground.registry, services))
        told["why"] = explained.sentences
    return told


def _history(ground: Ground, given: Mapping[str, Any]) -> Any:
    return {"events": history(ground.registry, given["job_id"], given.get("tail", 30))}


def _output(ground: Ground, given: Mapping[str, Any]) -> Any:
    job_id = check_job_id(given["job_id"])
    numbers = attempts_with_output(ground.registry, job_id)
    if not numbers:
        record(ground.registry, job_id)  # one that is no job at all is said
    attempt = given.get("attempt", numbers[-1] if numbers else 0)
    if attempt not in numbers:
        return {"attempt": attempt, "attempts_with_output": list(numbers), "text": ""}
    piece = read_output(ground.registry, job_id, attempt, limit=_OUTPUT_BYTES)
    lines = without_escapes(piece.data).splitlines()[-given.get("lines", 80) :]
    return {
        "attempt": attempt,
        "attempts_with_output": list(numbers),
        "text": "\n".join(line[:2000] for line in lines),
    }


def _attention(ground: Ground, given: Mapping[str, Any]) -> Any:
    now = ground.registry.clock.now()
    services = services_of(ground.registry, ground.registry_path, ground.config)
    found = attention(ground.registry, services=services)
    return {
        "needs": [need.to_dict(now) for need in found[:_MOST_ROWS]],
        "left_out": max(0, len(found) - _MOST_ROWS),
    }


def _questions(ground: Ground, given: Mapping[str, Any]) -> Any:
    return {"questions": [one.to_dict() for one in in_full(ground.registry, given["job_id"])]}


def _wait(ground: Ground, given: Mapping[str, Any]) -> Any:
    """By the records alone. Nothing is swept: whoever only looks changes nothing."""
    job_ids = list(dict.fromkeys(given["job_ids"]))
    if not 0 < len(job_ids) <= _MOST_ROWS:
        raise InvalidField(f"job_ids must name 1 to {_MOST_ROWS} jobs")
    deadline = time.monotonic() + given.get("timeout_sec", 30.0)
    while True:
        jobs = [ground.registry.get(job_id) for job_id in job_ids]
        over = time.monotonic() >= deadline or ground.is_stopped()
        if over or all(job.is_ended for job in jobs):
            return {"ended": all(job.is_ended for job in jobs), "jobs": [_end(one) for one in jobs]}
        time.sleep(paced(_LOOK_SEC))


def _end(job: Job) -> dict[str, Any]:
    return _row(Summary.of(job), "") | ({"detail": job.detail} if job.detail else {})


def _agents(ground: Ground, given: Mapping[str, Any]) -> Any:
    """What a new job can be given: agents that are here, and labels that somebody serves."""
    sessions, _ = SessionFolder(ground.registry_path).all()
    return {
        "agents": [
            {
                "agent": one.name,
                "here": one.is_here,
                **({"trouble": one.trouble} if one.trouble else {}),
            }
            for one in choices(ground.config)
        ],
        "sessions": [
            {"agent_session": one.label, "agent": one.agent, "name": one.name} for one in sessions
        ],
    }


READING = (
    Tool(
        "list_jobs",
        "List jobs",
        "The jobs of the registry, the newest last: status, agent, attempt, head of the prompt.",
        {
            "status": Argument("array", f"only these: {', '.join(_STATUSES)}"),
            "agent_session": Argument("string", "only jobs of this label"),
            "agent": Argument("string", "only jobs of this agent"),
            "group": Argument("string", "only jobs of this group"),
            "text": Argument("string", "only jobs with this in id or prompt"),
            "limit": Argument("integer", "at most so many (50)", least=1, most=_MOST_ROWS),
        },
        _list,
    ),
    Tool(
        "get_job",
        "Look at a job",
        "One record without its secrets, and why it stands where it does.",
        {"job_id": JOB_ID},
        _get,
    ),
    Tool(
        "wait_for_jobs",
        "Wait for jobs",
        "Until all of these jobs have ended, or the time is over; call it again to wait longer.",
        {
            "job_ids": Argument("array", "the jobs", required=True),
            "timeout_sec": Argument(
                "number", "at most so many seconds (30)", least=0, most=MOST_WAIT_SEC
            ),
        },
        _wait,
    ),
    Tool(
        "job_history",
        "What happened to a job",
        "The newest lines of a job's audit log, also after its record is gone.",
        {
            "job_id": JOB_ID,
            "tail": Argument("integer", "at most so many lines (30)", least=1, most=_MOST_ROWS),
        },
        _history,
    ),
    Tool(
        "job_output",
        "What a job printed",
        "The last lines that an attempt printed.",
        {
            "job_id": JOB_ID,
            "attempt": Argument("integer", "which one (the last)", least=1, most=10**6),
            "lines": Argument("integer", "at most so many (80)", least=1, most=_MOST_LINES),
        },
        _output,
    ),
    Tool(
        "attention",
        "What needs somebody",
        "Jobs that wait for an answer, were lost, failed or met a limit; the most urgent first.",
        {},
        _attention,
    ),
    Tool(
        "open_questions",
        "What a job's agent asks",
        "The questions that an agent at work waits for, with all of what it would do.",
        {"job_id": JOB_ID},
        _questions,
    ),
    Tool(
        "list_agents",
        "Agents and sessions",
        "Which agents can be run here, and which labels (agent_session) a session serves.",
        {},
        _agents,
    ),
)
