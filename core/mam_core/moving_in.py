"""Before something else than a record is put into a registry folder: is it one?"""

from __future__ import annotations

import os

from mam_core import registry_marks
from mam_core.disk import Folder, is_temp_name
from mam_core.errors import StoreError

_LOCK = ".lock"


def move_in(registry: Folder) -> None:
    """Make sure that this is a registry, as the files store does before its first write.

    A folder of other things, named by mistake, is left as it is; one that is
    made here gets the registry's lock file, by which the store knows it.
    """
    if registry.has(_LOCK):
        return
    registry.check_owner()
    names = [name for name in registry.names() if not is_temp_name(name)]
    has_records = any(name.endswith(".json") and name[0] != "." for name in names)
    # Asked again: what was listed may be the first steps of another who moves in just now.
    if names and not has_records and not registry.has(_LOCK):
        raise StoreError(f"{registry.path} is no registry: it holds other files, like {names[0]}")
    if not has_records:
        registry_marks.made_anew(registry.path)
    os.close(registry.open_in_place(_LOCK, os.O_RDWR))
