"""What an operator chose in the console, kept for the next time.

Columns, order, theme and the panel; never more than a convenience: a file that is
damaged, or cannot be written, costs the choices and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mam_core import codec
from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.locations import state_folder

_NAME = "console.json"
_MOST_BYTES = 65536
_MOST_CHARS = 200


class Preferences(NamedTuple):
    """The choices; what is empty was never made."""

    columns: tuple[str, ...] = ()
    sort: str = ""
    reverse: bool = False
    theme: str = ""
    panel: bool = True  #: the detail panel is shown where there is room
    tab: str = ""  #: of the detail panel
    hint_seen: bool = False  #: the hint of a first run was put away
    last_job: Mapping[str, str] = {}  #: what the form of a new job held last, without its prompt

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> Preferences:
        """Those that can be read; whatever is odd about the file is not worth a word."""
        try:
            with Folder.open(state_folder(environ)) as folder:
                data, _ = folder.read(_NAME, _MOST_BYTES)
            told = codec.loads(data)
        except (MamError, OSError, ValueError):
            return cls()
        return cls.from_dict(told) if isinstance(told, dict) else cls()

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Preferences:
        chosen: dict[str, Any] = {}
        for name, default in cls()._asdict().items():
            value = told.get(name)
            if isinstance(default, bool):
                fits = isinstance(value, bool)
            elif isinstance(default, str):
                fits = _is_short(value)
            elif isinstance(default, tuple):
                fits = isinstance(value, list) and all(map(_is_short, value))
                value = tuple(value) if fits and value is not None else value
            else:
                fits = isinstance(value, dict) and all(
                    _is_short(key) and _is_short(text) for key, text in value.items()
                )
            if fits:
                chosen[name] = value
        return cls(**chosen)

    def save(self, environ: Mapping[str, str] | None = None) -> None:
        """Raises `MamError` or `OSError` when it cannot be kept."""
        with Folder.open(state_folder(environ), create=True) as folder:
            folder.write(_NAME, codec.dumps(self._asdict()))


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_CHARS
