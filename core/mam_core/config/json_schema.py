"""A JSON schema of ``mam.toml``, for editors: made from the table that the reader itself uses.

It knows what a key may be called and what kind of value it takes. What only the reader
can judge (whether a folder exists, whether limits contradict each other) it leaves to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mam_core.config.kinds import Kind, Setting, Table
from mam_core.config.schema import TABLES

_Schema = dict[str, Any]

_TEXT: _Schema = {"type": "string", "minLength": 1}
_TEXTS: _Schema = {"type": "array", "items": {"type": "string"}}
_COUNT: _Schema = {"type": "integer", "minimum": 1}
_POSITIVE: _Schema = {"type": "number", "exclusiveMinimum": 0}
_SIZE: _Schema = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?[KMGTkmgt]?$"},
    ]
}

_KINDS: Mapping[Kind, _Schema] = {
    Kind.TEXT: _TEXT,
    Kind.PATH: _TEXT,
    Kind.STORE: {**_TEXT, "pattern": "^(files$|sqlite:|postgres(ql)?:)"},
    Kind.FLAG: {"type": "boolean"},
    Kind.COUNT: {"type": "integer", "minimum": 0},
    Kind.NUMBER: _POSITIVE,
    Kind.SECONDS: _POSITIVE,
    Kind.SIZE: _SIZE,
    Kind.PORT: {"type": "integer", "minimum": 1, "maximum": 65535},
    Kind.PATHS: {"type": "array", "items": _TEXT},
    Kind.WORDS: {**_TEXTS, "minItems": 1},
    Kind.NAMES: {
        "type": "array",
        "items": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
    },
    Kind.SOME: _TEXTS,
    Kind.PAIRS: {"type": "object", "additionalProperties": {"type": "string"}},
    Kind.DURATION: {"type": "string", "pattern": r"^[0-9.]+[smhd]?$"},
    Kind.CRON: {"type": "string", "pattern": r"^\S+(\s+\S+){4}$"},
    Kind.ZONE: _TEXT,
}

#: The fields of a record; one that is not here may be anything to an editor, and is still checked
#: when the file is read.
_FIELDS: Mapping[str, _Schema] = {
    **dict.fromkeys(
        ("agent", "agent_session", "group", "key", "model", "prompt", "topic_prefix"), _TEXT
    ),
    **dict.fromkeys(("validate", "workdir", "not_before", "resume"), _TEXT),
    **dict.fromkeys(("timeout_sec", "idle_timeout_sec", "max_cost"), _POSITIVE),
    **dict.fromkeys(("after", "expected_artifacts"), _TEXTS),
    **dict.fromkeys(("max_attempts", "max_tokens"), _COUNT),
    "priority": {"type": "integer"},
    "memory_max": _SIZE,
}


def json_schema() -> _Schema:
    """The whole file. A key that is not known is a mistake, as it is to the reader."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "mam.toml",
        "description": "The settings of mam; `mam help configuration` explains them.",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _table(name, table) for name, table in TABLES.items()},
    }


def _table(name: str, table: Table) -> _Schema:
    inner: _Schema = {
        "type": "object",
        "properties": {
            key: _setting(key, setting)
            for key, setting in table.settings.items()
            if setting.in_file
        },
        "additionalProperties": _setting("", table.any_key) if table.any_key else False,
    }
    if not table.named:
        return {"description": table.meaning, **inner}
    return {"description": table.meaning, "type": "object", "additionalProperties": inner}


def _setting(key: str, setting: Setting) -> _Schema:
    schema = dict(_FIELDS.get(key, {}) if setting.kind is Kind.FIELD else _KINDS[setting.kind])
    schema["description"] = setting.meaning
    if setting.kind is Kind.SOME:
        schema["items"] = {"enum": list(setting.choices)}
    elif setting.choices:
        schema["enum"] = list(setting.choices)
    if setting.default is not None:
        schema["default"] = setting.default
    return schema
