"""Papers of the files store: each a hidden file in the registry's folder."""

from __future__ import annotations

from mam_core.disk import Folder
from mam_core.stores.base import Paper

_MAX_BYTES = 4 * 1024 * 1024


def paper_name(name: Paper) -> str:
    return f".{name}"


def read_paper(folder: Folder, name: Paper) -> bytes | None:
    try:
        return folder.read(paper_name(name), _MAX_BYTES)[0]
    except FileNotFoundError:
        return None
