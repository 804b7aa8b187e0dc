"""A mistake of ours: one sentence for the person, and the rest in a file for whoever mends it."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.locations import state_folder
from mam_core.safe_text import one_line

_NAME = "crash.txt"
#: None: beside the console's choices.
_folder: ContextVar[str | None] = ContextVar("folder", default=None)


@contextmanager
def kept_in(folder: str) -> Iterator[None]:
    """While the block lasts; for a console whose own state is thrown away when it closes."""
    before = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(before)


def crashed(problem: BaseException, environ: Mapping[str, str] | None = None) -> str:
    """The sentence. The file has no values of variables: those may hold prompts and secrets."""
    said = one_line(f"{type(problem).__name__}: {problem}")[:300]
    sentence = f"mam: the console met a mistake of its own and was closed ({said}). Nothing is lost"
    with suppress(MamError, OSError):
        folder = _folder.get() or state_folder(environ)
        whole = "".join(traceback.format_exception(problem))
        with Folder.open(folder, create=True) as opened:
            opened.write(_NAME, whole.encode(errors="backslashreplace"))
        return f"{sentence}; {os.path.join(folder, _NAME)} says where it was."
    return f"{sentence}."
