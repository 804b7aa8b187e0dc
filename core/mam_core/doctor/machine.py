"""What this machine has that `mam` needs or can use; macOS is told honestly what it lacks."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator

from mam_core.doctor.findings import Area, Finding, note, ok, problem, warning
from mam_core.doctor.ground import Look
from mam_core.operations.agents import choices
from mam_core.safe_text import one_line
from mam_core.work.limits_probe import look_around

_PATIENCE_SEC = 10.0


def python(look: Look) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield ok(Area.MACHINE, "Python", f"{version}, {sys.executable}")


def tmux(look: Look) -> Iterator[Finding]:
    """Without it jobs can be run by `mam work`; sessions cannot, and those on record are dark."""
    said = _version("tmux", "-V")
    trouble = look.tmux_trouble
    if not trouble:
        yield ok(Area.MACHINE, "tmux", said.removeprefix("tmux ") or "it answers")
        return
    needed = sum(one.node == look.registry.node for one in look.ground.sessions.all()[0])
    words = f"{trouble.rstrip('.')}; `mam spawn` cannot start sessions"
    if needed:
        words += f", and how the {needed} on record stand is unknown"
        yield problem(Area.MACHINE, "tmux", words, rule="tmux")
    else:
        yield warning(Area.MACHINE, "tmux", words, rule="tmux")


def git(look: Look) -> Iterator[Finding]:
    if said := _version("git", "--version"):
        yield ok(Area.MACHINE, "git", said.removeprefix("git version "))
    else:
        words = "it is not on the PATH: there are no worktrees for sessions, and no `mam diff`"
        yield warning(Area.MACHINE, "git", words)


def kernel(look: Look) -> Iterator[Finding]:
    """Decision 30: Linux in full, macOS with what its kernel has."""
    yield ok(Area.MACHINE, "system", f"{platform.system()} {platform.release()}")
    if sys.platform != "linux":
        words = (
            "no pidfd, no subreaper and no namespaces: agents are ended by process group and "
            "token, and one that hides its token can outlive its job"
        )
        yield note(Area.MACHINE, "system", words, rule="not linux")
    for means in look_around():
        tell = ok if means.is_there else note
        yield tell(Area.MACHINE, means.what, means.words)


def agents(look: Look) -> Iterator[Finding]:
    found = choices(look.ground.config)
    here = [one for one in found if one.is_here]
    for one in here:
        yield ok(Area.AGENTS, one.name, f"is here ({one.mode})")
    for one in found:
        if one.trouble:
            yield warning(Area.AGENTS, one.name, one.trouble)
    missing = [one.name for one in found if not one.is_here and not one.trouble]
    if missing:
        words = f"not on this machine: {', '.join(missing)}"
        yield note(Area.AGENTS, "others", words)


def _version(name: str, option: str) -> str:
    """What a program says of itself; empty when it is not here or says nothing."""
    path = shutil.which(name)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_SEC,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return one_line(done.stdout.decode(errors="replace")) if done.returncode == 0 else ""
