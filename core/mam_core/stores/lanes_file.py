"""``.outbox/lanes``: which brokers the relay reaches, and which not, for whoever publishes.

Written by the relay at every change and believed only while it lives, which the
bell tells. It is a courtesy: without it an event goes the same way, and only the
word that a publisher says about it is a vaguer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from mam_core import codec
from mam_core.disk import Folder
from mam_core.errors import MamError

LANES = "lanes"
_MAX_BYTES = 64 * 1024


def read_lanes(folder: Folder) -> dict[str, bool]:
    """By the broker's ``host:port``; one that is not named was not tried yet."""
    try:
        data, _ = folder.read(LANES, _MAX_BYTES)
        return {place: up for place, up in codec.loads(data).items() if isinstance(up, bool)}
    except (OSError, MamError):
        return {}


def write_lanes(folder: Folder, lanes: Mapping[str, bool]) -> None:
    """What cannot be written must not be an old word either."""
    try:
        folder.write(LANES, codec.dumps_line(dict(lanes)))
    except (OSError, MamError):
        remove_lanes(folder)


def remove_lanes(folder: Folder) -> None:
    with suppress(OSError, MamError):
        folder.remove(LANES)
