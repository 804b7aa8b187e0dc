"""Serve the registry to an agent, by the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from mam_core.config import Config
from mam_core.errors import InvalidField, MamError
from mam_core.mcp.acting import ACTING
from mam_core.mcp.reading import READING
from mam_core.mcp.results import as_text
from mam_core.mcp.server import Server
from mam_core.mcp.tool import Ground, Tool
from mam_core.records import Job
from mam_core.registry import Registry

ALL_TOOLS = (*READING, *ACTING)
_BY = "mcp"


def serve(
    open_registry: Callable[[], Registry],
    registry_path: str,
    config: Config,
    streams: tuple[BinaryIO, BinaryIO],
    say: Callable[[str], None],
    *,
    allow_write: bool = False,
    only: Sequence[str] = (),
) -> None:
    """Until the client closes its end. Without `allow_write` there are only tools that look;
    `only` narrows them further, by name.

    Each call opens a registry of its own: calls run side by side, and a registry that was
    moved meanwhile is found again.
    """
    tools = chosen(allow_write=allow_write, only=only)

    def run(tool: Tool, given: Mapping[str, Any], is_stopped: Callable[[], bool]) -> str:
        with open_registry() as registry:
            registry.actor = f"{registry.actor} ({_BY})"
            found = tool.call(Ground(registry, registry_path, config, is_stopped), given)
            return as_text(found, _jobs(registry, given, found))

    Server(tools, run, say).serve(*streams)


def chosen(*, allow_write: bool, only: Sequence[str] = ()) -> list[Tool]:
    """Raises `InvalidField` for a name that is none, or one that only looking does not allow."""
    offered = {tool.name: tool for tool in ALL_TOOLS if allow_write or not tool.changes}
    for name in only:
        if name not in offered:
            acts = any(tool.name == name for tool in ALL_TOOLS)
            why = "needs --allow-write" if acts else f"is none of {', '.join(offered)}"
            raise InvalidField(f"the tool {name[:80]} {why}")
    return [tool for name, tool in offered.items() if not only or name in only]


def _jobs(registry: Registry, given: Mapping[str, Any], found: Any) -> list[Job]:
    """Those that the call was about; their own secrets are looked for in what is told."""
    named = [given.get("job_id"), *given.get("job_ids", ())]
    for rows in (found.get("jobs"), found.get("needs")) if isinstance(found, dict) else ():
        named += [row.get("job_id") for row in rows or ()]
    jobs = []
    for job_id in dict.fromkeys(one for one in named if isinstance(one, str)):
        with suppress(MamError):
            jobs.append(registry.get(job_id))
    return jobs
