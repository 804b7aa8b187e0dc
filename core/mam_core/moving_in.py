"""Before something else than a record is put into a registry folder: is it one?"""

from __future__ import annotations

import os

from mam_core import registry_marks
from mam_core.disk import Folder, is_temp_name
from mam_core.errors import StoreError

_LOCK = ".lock"
#: Everything else that mam puts into a registry folder, except records and temporary files. A
#: command that was running while somebody removed the registry may have created some of it again.
_OURS = frozenset(
    {
        *(".acts", ".answerer", ".archive", ".broker", ".deploy.json", ".deploy.lock", ".gates"),
        *(".index", ".journal", ".outbox", ".sessions", ".submissions"),
    }
)


def move_in(registry: Folder) -> None:
    """Make sure that this is a registry, as the files store does before its first write.

    One that is made here gets the registry's lock file, by which the store knows it.
    """
    if registry.has(_LOCK):
        return
    registry.check_owner()
    check_no_other_files(registry)
    os.close(registry.open_in_place(_LOCK, os.O_RDWR))


def check_no_other_files(registry: Folder) -> None:
    """Raises `StoreError` for a folder of other things, which somebody named by mistake.

    Without records it is a new registry, and perhaps replaces one that was removed.
    """
    names = [name for name in registry.names() if not is_temp_name(name)]
    if any(name.endswith(".json") and name[0] != "." for name in names):
        return
    strange = [name for name in names if name not in _OURS and name != _LOCK]
    # Asked again: what was listed may be the first steps of another who moves in just now.
    if strange and not registry.has(_LOCK):
        raise StoreError(f"{registry.path} is no registry: it holds other files, like {strange[0]}")
    registry_marks.made_anew(registry.path)
