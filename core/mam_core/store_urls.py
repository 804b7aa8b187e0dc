"""Where the records are, as one text: ``files``, ``sqlite:PATH`` or ``postgresql://…``.

A password may stand in such a text only where nobody else reads it, in a file or in
the environment; `without_password` is what may be shown and handed on. A file that
holds one may be named by anybody: ``postgresql://db/jobs?password_file=~/.mam-db``.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from typing import NamedTuple

from mam_core.errors import ConfigError

_SCHEME = re.compile(r"([a-z]+):(.*)", re.DOTALL)
#: ``//user:word@host``, and ``password=word`` among the parameters.
_IN_LOGIN = re.compile(r"(//[^/?#@:]*):[^/?#@]*@")
_IN_PARAMETERS = re.compile(r"([?&](?:password|sslpassword)=)[^&#]*")
_PASSWORD_FILE = re.compile(r"([?&])password_file=([^&#]*)")


class StoreKind(StrEnum):
    """The stores that a registry can be kept in."""

    FILES = "files"  #: a folder of records; the default
    SQLITE = "sqlite"  #: one file, for one host
    POSTGRES = "postgresql"  #: a server, for many hosts


class StoreUrl(NamedTuple):
    """A store, and where it is: a path, or all that libpq wants to know."""

    kind: StoreKind
    place: str = ""

    @classmethod
    def parse(cls, text: str, base: str = "") -> StoreUrl:
        """A path is taken from `base`. Raises `ConfigError`, whose words do not show `text`."""
        if text in ("", StoreKind.FILES):
            return cls(StoreKind.FILES)
        match = _SCHEME.fullmatch(text)
        scheme, place = (match[1], match[2]) if match else ("", "")
        if scheme == StoreKind.SQLITE:
            path = place.removeprefix("//")
            if not path or "\0" in path:
                raise ConfigError("sqlite: names no file; say sqlite:PATH")
            return cls(StoreKind.SQLITE, os.path.join(base, os.path.expanduser(path)))
        if scheme in ("postgresql", "postgres") and place.startswith("//"):
            return cls(StoreKind.POSTGRES, f"postgresql:{place}")
        raise ConfigError("a store is files, sqlite:PATH or postgresql://…")

    def __str__(self) -> str:
        if self.kind is StoreKind.SQLITE:
            return f"{self.kind}:{self.place}"
        return self.place or str(self.kind)

    @property
    def has_password(self) -> bool:
        return self.without_password != str(self)

    @property
    def without_password(self) -> str:
        if self.kind is not StoreKind.POSTGRES:
            return str(self)
        plain = _IN_LOGIN.sub(r"\1@", self.place)
        plain = _IN_PARAMETERS.sub(lambda found: found[0][:1], plain)
        return _tidy(plain)

    @property
    def password_file(self) -> str | None:
        """Of our own: libpq knows no such parameter, and would refuse it."""
        if self.kind is not StoreKind.POSTGRES:
            return None
        found = _PASSWORD_FILE.search(self.place)
        if not found:
            return None
        from urllib.parse import unquote  # slow to load, and needed by few

        return os.path.expanduser(unquote(found[2])) or None

    @property
    def without_password_file(self) -> StoreUrl:
        return StoreUrl(self.kind, _tidy(_PASSWORD_FILE.sub(r"\1", self.place)))

    def with_password_file(self, path: str) -> StoreUrl:
        from urllib.parse import quote

        bare = self.without_password_file
        mark = "&" if "?" in bare.place else "?"
        return StoreUrl(self.kind, f"{bare.place}{mark}password_file={quote(path, safe='/')}")


def _tidy(url: str) -> str:
    """Without what is left behind by a parameter that was taken out."""
    return url.replace("?&", "?").replace("&&", "&").rstrip("?&")
