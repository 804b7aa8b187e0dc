"""Names that tmux keeps as they are: of its socket, and of the sessions on it.

tmux turns ``.`` and ``:`` of a session's name into ``_`` without a word, expands ``#{…}`` in it,
and reads ``$1`` or ``%3`` as an id. A name that comes out other than it went in belongs
to nobody's label, so it is refused before tmux sees it.
"""

from __future__ import annotations

import os

from mam_core.locations import realm_of
from mam_core.safe_text import safe
from mam_core.tmux.facts import BadSessionName

_LONGEST = 64
_MARKS = frozenset("_-+@")


def socket_name(registry_path: str, configured: str | None = None) -> str:
    """``mam-`` and 8 hex digits of the registry's real path, or what the operator chose."""
    if configured:
        if "/" in configured or not configured.isprintable():
            raise BadSessionName(
                f"[tmux] socket is a name and not a path, and {safe(configured)!r} is none"
            )
        return configured
    return "mam-" + realm_of(registry_path)


def socket_path(name: str) -> str:
    """Where tmux itself would make a socket of this name, for a process with our environment."""
    home = os.environ.get("TMUX_TMPDIR") or "/tmp"
    return os.path.join(os.path.realpath(home), f"tmux-{os.getuid()}", name)


def turnstile_path(socket: str) -> str:
    """The lock beside a socket, see `turnstile`; tmux has a file `<socket>.lock` of its own."""
    return f"{socket}.turnstile"


def checked(name: str) -> str:
    """The name of a session, as it was given; BadSessionName says what is wrong with it."""
    shown = safe(name)
    if not name or len(name) > _LONGEST:
        raise BadSessionName(f"a session's name has 1 to {_LONGEST} characters: {shown!r}")
    if not (name[0].isalnum() or name[0] == "_"):
        raise BadSessionName(f"a session's name begins with a letter, a digit or '_': {shown!r}")
    for character in name:
        if not (character.isalnum() or character in _MARKS):
            raise BadSessionName(
                f"a session's name has letters, digits and _ - + @ in it, and {shown!r} "
                f"has {safe(character)!r}"
            )
    return name
