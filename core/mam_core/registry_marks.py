"""A mark for each registry that held jobs, outside of its folder, so that its removal is noticed.

An agent's ``rm -rf`` or ``git clean`` takes the registry with it, and an empty one would look
as if nothing had ever been there. The mark is kept in the person's state folder, by host (a home
may be shared) and by real path. A second mark says that a registry was made anew in the place of
one that was removed; it stays until a person confirms that.
"""

from __future__ import annotations

import os
from contextlib import suppress

from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.locations import state_folder

_ANEW = ".anew"
#: Room for our endings in the 255 bytes of a file name.
_LONGEST = 200


def remember(place: str) -> None:
    """A registry at `place` holds jobs."""
    mark = _mark(place)
    if not os.path.lexists(mark):
        _make(mark, place)


def is_marked(place: str) -> bool:
    """A registry at `place` held jobs once."""
    return os.path.lexists(_mark(place))


def made_anew(place: str) -> None:
    """A registry is made at `place`, where there was none."""
    mark = _mark(place)
    if os.path.lexists(mark):
        _make(mark + _ANEW, place)


def forget(place: str) -> None:
    """A person knows of the removal, or mam moved the registry itself."""
    mark = _mark(place)
    for name in (mark, mark + _ANEW):
        with suppress(OSError):
            os.unlink(name)


def removal(place: str, *, is_there: bool) -> str:
    """A warning that a registry was removed; empty: none was. `is_there`: one exists at `place`."""
    mark = _mark(place)
    if os.path.lexists(mark + _ANEW):
        return (
            f"the registry at {place} was removed with its jobs, and a new one was started in its "
            "place. Restore a backup, or run `mam init --again` to accept that"
        )
    if not is_there and os.path.lexists(mark):
        return (
            f"the registry at {place} held jobs and is gone. If a disk is not mounted, mount it; "
            "else restore a backup, or run `mam init --again` to start with an empty one"
        )
    return ""


def _make(path: str, place: str) -> None:
    """Write a mark; a failure is ignored, since a mark only adds a warning."""
    home, name = os.path.split(path)
    with suppress(MamError, OSError), Folder.open(home, create=True) as folder:
        folder.put_new(name, os.fsencode(place) + b"\n")


def _mark(place: str) -> str:
    real = os.fsencode(os.path.realpath(place))
    name = real.replace(b"%", b"%25").replace(b"/", b"%2F")
    if len(name) > _LONGEST:
        import hashlib  # hardly any path is so long

        name = hashlib.sha256(real).hexdigest().encode()
    folder = os.path.join(state_folder(), "registries", os.uname().nodename)
    return os.path.join(folder, os.fsdecode(name))
