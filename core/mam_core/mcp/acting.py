"""Tools that act: register, answer, say, cancel, try again. Only there when the operator said so.

No shell line can be given by them: neither a job of the agent ``shell`` nor a check to be run
(`validate`). Where a job works is bounded, too. What an agent may run on this machine is its own
program's decision.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mam_core.errors import InvalidField
from mam_core.locations import DEFAULT_REGISTRY_DIR
from mam_core.mcp.reading import JOB_ID
from mam_core.mcp.tool import Argument, Ground, Tool
from mam_core.operations.answer import answer
from mam_core.operations.cancel import cancel
from mam_core.operations.delivery import RECEIPT_SEC, Wait
from mam_core.operations.known_names import strange_names
from mam_core.operations.outcome import Outcome
from mam_core.operations.register import defaults_of, missing, register
from mam_core.operations.retry import retry
from mam_core.operations.say import say

_SHELL = "shell"
_TEXT = Argument("string", "what is said", required=True)


def _register(ground: Ground, given: Mapping[str, Any]) -> Any:
    defaults = defaults_of(ground.config)
    if lacking := missing({**defaults, **given}):
        raise InvalidField(f"register_job needs {', '.join(lacking)}")
    if {**defaults, **given}.get("agent") == _SHELL:
        raise InvalidField("a job of the agent shell is a shell line, which is not taken here")
    given = {**given, "workdir": _bounded_workdir(ground, given.get("workdir"))}
    strange = strange_names(ground.registry, ground.registry_path, ground.config, [given])
    made = register(ground.registry, given, defaults)
    told: dict[str, Any] = {"job_id": made.job_id}
    if strange and not made.existed:
        told["warnings"] = strange
    if made.existed:
        told["note"] = "a job with this key is not over yet: nothing new was registered"
    elif made.twin:
        told["note"] = f"job {made.twin} has the same label and prompt, and is not over yet"
    return told


def _bounded_workdir(ground: Ground, asked: str | None) -> str:
    """Where the job will work, links resolved. Raises `InvalidField` for a place outside."""
    try:
        workdir = os.path.realpath(os.path.expanduser(asked or ""))
    except ValueError:  # a NUL, or half a character
        raise InvalidField("workdir: it is not a path") from None
    roots = _roots(ground)
    if not any(_is_in(workdir, root) for root in roots):
        there = ", ".join(roots) or "none"
        raise InvalidField(
            f"workdir: {workdir} is in none of the folders that this server may use ({there}); "
            "the operator can name more in [mcp] workdirs"
        )
    return workdir


def _roots(ground: Ground) -> list[str]:
    """The folders in which, and below which, jobs may work.

    A client may start its servers in ``/``, which would bound nothing.
    """
    roots = ground.config.mcp.workdirs
    if roots is None:
        registry = os.path.realpath(ground.registry_path)
        home = os.path.dirname(registry)
        if os.path.basename(home) == os.path.dirname(DEFAULT_REGISTRY_DIR):
            home = os.path.dirname(home)
        roots = tuple(one for one in (os.getcwd(), home) if os.path.realpath(one) != os.sep)
    return list(dict.fromkeys(map(os.path.realpath, roots)))


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _answer(ground: Ground, given: Mapping[str, Any]) -> Any:
    question = given.get("question", "")
    wait = Wait(RECEIPT_SEC, ground.is_stopped)
    return _told(answer(ground.registry, given["job_id"], given["text"], wait, question=question))


def _say(ground: Ground, given: Mapping[str, Any]) -> Any:
    wait = Wait(RECEIPT_SEC, ground.is_stopped)
    return _told(say(ground.registry, given["job_id"], given["text"], wait))


def _cancel(ground: Ground, given: Mapping[str, Any]) -> Any:
    return _told(cancel(ground.registry, [given["job_id"]], given.get("why", ""))[0])


def _retry(ground: Ground, given: Mapping[str, Any]) -> Any:
    resume_by = ground.config if given.get("resume") else None
    return _told(retry(ground.registry, [given["job_id"]], resume_by=resume_by)[0])


def _told(outcome: Outcome) -> dict[str, Any]:
    """A refusal is an error for the model, too."""
    if outcome.error is not None:
        raise outcome.error
    return outcome.to_dict()


ACTING = (
    Tool(
        "register_job",
        "Register a job",
        "Put a job into the registry. A session of exactly its label claims and runs it; "
        "list_agents names those that there are. Completed means that its artifacts are there.",
        {
            "prompt": Argument("string", "what the agent is to do; it sees nothing else", True),
            "agent": Argument("string", "which agent: see list_agents"),
            "agent_session": Argument("string", "the label of the session, like tmux:claude"),
            "expected_artifacts": Argument("array", "files that must be there, new and not empty"),
            "workdir": Argument("string", "where it works (default: where the server does)"),
            "key": Argument("string", "while a job with this key lives, no second is registered"),
            "after": Argument("array", "ids of jobs that must be completed before"),
            "group": Argument("string", "a group, which may have a limit of slots"),
            "priority": Argument(
                "integer", "higher is claimed earlier (0)", False, (), -1000, 1000
            ),
            "model": Argument("string", "which model the agent is to use"),
            "timeout_sec": Argument("number", "the longest an attempt may take"),
            "idle_timeout_sec": Argument("number", "the longest an attempt may be silent"),
            "max_attempts": Argument("integer", "how often it may be tried (1)", False, (), 1, 100),
            "max_cost": Argument("number", "US dollars that an attempt may use up"),
            "max_tokens": Argument("integer", "tokens that an attempt may use up"),
        },
        _register,
        changes=True,
    ),
    Tool(
        "answer_question",
        "Answer a question",
        "Answer what a job's agent asks: y, n or a text. It waits until the agent has taken it.",
        {
            "job_id": JOB_ID,
            "text": _TEXT,
            "question": Argument("string", "which, when several are open: see open_questions"),
        },
        _answer,
        changes=True,
        destroys=True,
    ),
    Tool(
        "say_to_agent",
        "Say something to an agent",
        "One more instruction for the agent of a running job.",
        {"job_id": JOB_ID, "text": _TEXT},
        _say,
        changes=True,
    ),
    Tool(
        "cancel_job",
        "Cancel a job",
        "Take a job out of the queue, or end what runs of it.",
        {"job_id": JOB_ID, "why": Argument("string", "kept in its history")},
        _cancel,
        changes=True,
        destroys=True,
    ),
    Tool(
        "retry_job",
        "Try a job again",
        "Make a job that failed or was cancelled pending again.",
        {
            "job_id": JOB_ID,
            "resume": Argument("boolean", "let the agent go on in its last session"),
        },
        _retry,
        changes=True,
    ),
)
