"""Which program an agent is, whatever its profile is called.

A profile's name is its owner's: ``claude-opus`` runs the same program as
``claude-code``, with the same hooks and the same dialogs. So channels and screen
rules are both chosen here, by the stream that the profile names, else by the
name of its program. A wrapper with another name says ``stream`` in mam.toml.
"""

from __future__ import annotations

import os

from mam_core.agents.profiles import BUILT_IN, Profile
from mam_core.agents.streams import StreamFormat

_PROGRAMS: dict[str, StreamFormat] = {
    os.path.basename(known.program): known.stream for known in BUILT_IN.values()
}
_NAMES: dict[StreamFormat, str] = {
    known.stream: known.name
    for known in BUILT_IN.values()
    if known.stream is not StreamFormat.PLAIN
}
_NAMES[StreamFormat.GEMINI_DOCUMENT] = _NAMES[StreamFormat.GEMINI]


def kind_of(profile: Profile) -> StreamFormat:
    """By what its stream is or would be; `PLAIN` for a program that nobody knows."""
    if profile.stream is not StreamFormat.PLAIN:
        return profile.stream
    return _PROGRAMS.get(os.path.basename(profile.program), StreamFormat.PLAIN)


def built_in_name(profile: Profile) -> str | None:
    """The built-in agent that it is by another name, or by the same."""
    return _NAMES.get(kind_of(profile))
