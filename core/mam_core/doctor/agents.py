"""The agents: which are here, in which version, and whether anybody has logged in to them.

Nothing is sent anywhere, and no key is read. Only programs that we know are started, and
only to tell their version: what a wrapper of somebody's own does when it is started is not
ours to find out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from mam_core.agents.kinds import built_in_name
from mam_core.agents.profiles import Profile, find_program, lacking, profile_names, profile_of
from mam_core.agents.tried import TRIED
from mam_core.doctor.findings import Area, Finding, note, ok, warning
from mam_core.doctor.ground import Look
from mam_core.doctor.programs import told_by
from mam_core.errors import MamError

_AREA = Area.AGENTS


class _Here(NamedTuple):
    """A profile whose program was found."""

    profile: Profile
    path: str
    known_as: str | None  #: the built-in agent that it is


def found(look: Look) -> Iterator[Finding]:
    here: list[_Here] = []
    missing: list[str] = []
    for name in profile_names(look.ground.config):
        try:
            profile = profile_of(look.ground.config, name)
        except MamError as trouble:
            advice = f"mend [agents.{name}] in mam.toml; `mam config agents` shows where it is"
            yield warning(_AREA, name, trouble.message, advice=advice)
            continue
        environ = {**os.environ, **profile.env}
        path = find_program(profile, environ.get("PATH", os.defpath))
        if path is None:
            missing.append(name)
        else:
            here.append(_Here(profile, path, built_in_name(profile)))
    yield from _told(here)
    if missing:
        advice = "install one and log in to it; `mam help agents` tells what each needs"
        words = f"not on this machine: {', '.join(missing)}"
        yield note(_AREA, "others", words, advice=advice if len(here) < 2 else "")


def _told(here: list[_Here]) -> Iterator[Finding]:
    """Asked all at once: each takes seconds to start, and together they take no longer."""
    if not here:
        return
    with ThreadPoolExecutor(len(here)) as pool:
        for one, version in zip(here, pool.map(_version, here), strict=True):
            yield from _about(one, version)


def _version(one: _Here) -> str:
    if one.known_as is None or not one.profile.version:
        return ""
    said = told_by([one.path, *one.profile.version], one.profile.env)
    number = re.search(r"\d+\.\d+(\.\d+)*\S*", said)
    return number.group() if number else said


def _about(one: _Here, version: str) -> Iterator[Finding]:
    profile, tried = one.profile, TRIED.get(one.known_as or "")
    words = f"is here ({profile.mode})" if not version else f"{version} ({profile.mode})"
    if tried is not None and not version:
        words += "; it did not tell its version"
    elif tried is not None and version != tried.version:
        words += f"; recorded with {tried.version}"
    if names := lacking(profile, {**os.environ, **profile.env}):
        yield warning(
            _AREA,
            profile.name,
            f"{words}; it needs {', '.join(names)}",
            rule="needs",
            advice=f"export {' '.join(f'{name}=…' for name in names)}",
        )
    elif tried is None:
        yield ok(_AREA, profile.name, words)
    elif sign := tried.sign_of_login({**os.environ, **profile.env}):
        yield ok(_AREA, profile.name, f"{words}; a login by {sign}")
    else:
        words = f"{words}; there is no sign of a login"
        yield note(_AREA, profile.name, words, rule="login", advice=tried.login)
