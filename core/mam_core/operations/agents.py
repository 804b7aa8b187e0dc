"""Which agents there are to choose from, and which of them are here."""

from __future__ import annotations

import os
from typing import NamedTuple

from mam_core.agents.profiles import find_program, profile_names, profile_of
from mam_core.config import Config
from mam_core.errors import MamError


class Choice(NamedTuple):
    """One agent profile."""

    name: str
    mode: str
    is_here: bool  #: its program was found
    trouble: str = ""  #: why it cannot be used at all


def choices(config: Config) -> list[Choice]:
    """Every profile, those that can be run here first."""
    path = os.environ.get("PATH", os.defpath)
    found = []
    for name in profile_names(config):
        try:
            profile = profile_of(config, name)
        except MamError as problem:
            found.append(Choice(name, "", False, problem.message))
        else:
            here = find_program(profile, path) is not None
            found.append(Choice(name, str(profile.mode), here))
    return sorted(found, key=lambda choice: (not choice.is_here, bool(choice.trouble), choice.name))
