"""Which pages there are, and where: beside the installed code, or in the clone that it is."""

from __future__ import annotations

import os
from typing import NamedTuple

from mam_core.errors import MamError

_ENDING = ".md"
#: A page is written by hand; a file that is longer is none.
_MAX_BYTES = 1024 * 1024


class NoTopic(MamError):
    """There is no page of that name."""

    title = "Manual"
    exit_code = 2


class Topic(NamedTuple):
    """One page."""

    name: str
    title: str
    path: str

    def text(self) -> str:
        with open(self.path, "rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace")


def topics() -> list[Topic]:
    """Every page, by name; none where mam was installed without them."""
    folder = manual_folder()
    if folder is None:
        return []
    names = sorted(name for name in os.listdir(folder) if name.endswith(_ENDING))
    return [_topic(os.path.join(folder, name)) for name in names]


def topic_called(name: str) -> Topic:
    """By its name, with or without the ending of its file; or by its only beginning."""
    wanted = name.removesuffix(_ENDING).lower()
    known = topics()
    exact = [one for one in known if one.name == wanted]
    near = exact or [one for one in known if wanted and one.name.startswith(wanted)]
    if len(near) == 1:
        return near[0]
    there = ", ".join(one.name for one in near or known) or "none, mam was installed without them"
    raise NoTopic(f"{name[:40]!r} is neither a verb nor a page; pages: {there}")


def manual_folder() -> str | None:
    code = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(code, "docs")
    clone = os.path.join(os.path.dirname(os.path.dirname(code)), "docs")
    return next((one for one in (installed, clone) if os.path.isdir(one)), None)


def _topic(path: str) -> Topic:
    name = os.path.basename(path).removesuffix(_ENDING)
    with open(path, "rb") as file:
        first = file.readline(1000).decode(errors="replace").strip()
    return Topic(name, first.removeprefix("#").strip() or name, path)
