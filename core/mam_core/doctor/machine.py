"""What this machine has that `mam` needs or can use; macOS is told honestly what it lacks."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata

from mam_core.doctor.findings import Area, Finding, note, ok, problem, warning
from mam_core.doctor.ground import Look
from mam_core.doctor.programs import told_by
from mam_core.work.limits_probe import look_around

#: Tells by which signal a pane's process ended, and when.
_TMUX_THAT_TELLS = (3, 3)
#: What each of our packages is for, where it is missing.
_PACKAGES = {
    "textual": "there is no console; every verb works",
    "libtmux": "there are no agent sessions; `mam work` runs jobs all the same",
    "paho-mqtt": "events stay on this host, in the registry",
    "watchfiles": "`mam watch` and `mam submit` cannot follow jobs",
}
_INSTALL_TMUX = "install tmux 3.2 or newer (Debian: apt-get install tmux, macOS: brew install tmux)"


def python(look: Look) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield ok(Area.MACHINE, "Python", f"{version}, {sys.executable}")


def packages(look: Look) -> Iterator[Finding]:
    """A worker's host need not have them all."""
    here = []
    for name, without in _PACKAGES.items():
        try:
            here.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            advice = f"pip install {name}, if you want it here"
            words = f"it is not installed: {without}"
            yield note(Area.MACHINE, name, words, rule="package", advice=advice)
    if here:
        yield ok(Area.MACHINE, "packages", ", ".join(here))


def tmux(look: Look) -> Iterator[Finding]:
    """Without it jobs can be run by `mam work`; sessions cannot, and those on record are dark."""
    said = _version("tmux", "-V")
    trouble = look.tmux_trouble
    if not trouble:
        yield from _tmux_that_answers(said.removeprefix("tmux "))
        return
    needed = sum(one.node == look.registry.node for one in look.ground.sessions.all()[0])
    words = f"{trouble.rstrip('.')}; `mam spawn` cannot start sessions"
    advice = "pip install libtmux" if said and "libtmux" in trouble else _INSTALL_TMUX
    if needed:
        words += f", and how the {needed} on record stand is unknown"
        yield problem(Area.MACHINE, "tmux", words, rule="tmux", advice=advice)
    else:
        yield warning(Area.MACHINE, "tmux", words, rule="tmux", advice=advice)


def _tmux_that_answers(version: str) -> Iterator[Finding]:
    number = re.match(r"(\d+)\.(\d+)", version)
    if number and (int(number[1]), int(number[2])) < _TMUX_THAT_TELLS:
        words = f"{version} does not tell by which signal a pane ended, nor when"
        yield note(Area.MACHINE, "tmux", words, advice="tmux 3.3 or newer does")
    else:
        yield ok(Area.MACHINE, "tmux", version or "it answers")


def git(look: Look) -> Iterator[Finding]:
    if said := _version("git", "--version"):
        yield ok(Area.MACHINE, "git", said.removeprefix("git version "))
    else:
        words = "it is not on the PATH: there are no worktrees for sessions, and no `mam diff`"
        yield warning(Area.MACHINE, "git", words, advice="install git")


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


def _version(name: str, option: str) -> str:
    """What a program says of itself; empty when it is not here or says nothing."""
    path = shutil.which(name)
    return told_by([path, option]) if path else ""
