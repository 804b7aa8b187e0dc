"""What a setting, a table of settings and the kinds of their values are."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """What a value may be."""

    TEXT = "a text"
    FLAG = "true or false"
    COUNT = "a whole number, not negative"
    NUMBER = "a positive number"
    SECONDS = "a positive number of seconds"
    SIZE = 'a size such as "8G", or bytes'
    PORT = "a port between 1 and 65535"
    PATH = "a path"  #: relative to the file that says it
    PATHS = "a list of paths"  #: relative to the file that says it
    WORDS = "a list of texts"
    NAMES = "a list of names of variables"
    SOME = "a list of some of these words"  #: those of `Setting.choices`
    DURATION = 'a duration such as "30m"'
    CRON = "five fields as cron has them"
    ZONE = 'a time zone such as "Europe/Berlin"'
    PAIRS = "a table of texts"
    STORE = "files, sqlite:PATH or postgresql://…"  #: a path is relative to the file
    FIELD = "what `mam register` takes"  #: checked as the record's own field


class Setting(NamedTuple):
    """One key."""

    kind: Kind
    meaning: str
    default: Any = None  #: None: decided where it is used
    choices: tuple[str, ...] = ()
    secret: bool = False
    in_file: bool = True  #: False: by environment only


class Table(NamedTuple):
    """One table of the file."""

    meaning: str
    settings: Mapping[str, Setting]
    named: bool = False  #: ``[table.NAME]``: the same settings once for each name
    any_key: Setting | None = None  #: keys that only their user knows
