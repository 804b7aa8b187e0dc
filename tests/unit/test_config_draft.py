"""The file that `mam init` writes, and its schema: both say what the reader accepts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.config import load
from mam_core.config.draft import draft
from mam_core.config.json_schema import json_schema
from mam_core.config.reading import read_file
from mam_core.config.schema import TABLES
from mam_core.errors import ConfigError
from mam_tui import keymap
from tests.support.rows import each_row

CHOSEN = {
    ("defaults", "agent"): "codex",
    ("defaults", "agent_session"): 'tmux:"odd" \\ é',
    ("groups", "night shift", "slots"): 2,
}


def switched_on(text: str) -> str:
    """Every setting that is switched off, switched on."""
    return re.sub(r"^#(?=[a-z_]+ = |\[)", "", text, flags=re.MULTILINE)


class TestTheDraft:
    def test_sets_what_was_chosen_and_nothing_else(self, tmp_path: Path) -> None:
        path = tmp_path / "mam.toml"
        path.write_text(draft(CHOSEN))
        assert {place: value.value for place, value in read_file(str(path)).items()} == CHOSEN

    def test_shows_every_key_with_a_value_that_is_taken(self, tmp_path: Path) -> None:
        path = tmp_path / "mam.toml"
        path.write_text(switched_on(draft({})))
        shown = {(place[0], place[-1]) for place in read_file(str(path))}
        wanted = {
            (name, key)
            for name, table in TABLES.items()
            for key, setting in table.settings.items()
            if setting.in_file and name != "templates"
        }
        assert shown >= wanted
        assert {"agents", "groups", "templates", "keys"} <= {name for name, _ in shown}

    def test_its_examples_are_taken_by_the_console_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        text = switched_on(draft({}))
        # A schedule goes by one of the two.
        (tmp_path / "mam.toml").write_text(re.sub(r"^cron = .*$", "", text, flags=re.MULTILINE))
        config = load()
        assert keymap.read(config) == {"cancel": "delete"}

    def test_fits_a_page(self) -> None:
        assert max(map(len, draft(CHOSEN).splitlines())) <= 100


class TestTheSchema:
    """Judged by a small reader of JSON schemas: the keywords that ours uses."""

    @each_row(
        "text",
        [
            "",
            draft({}),
            draft(CHOSEN),
            switched_on(draft({})),
            '[store]\nurl = "sqlite:jobs.sqlite"\n',
            '[defaults]\nmemory_max = 1024\n[agents.x]\nneeds = []\ncommand = ["x"]\n',
        ],
    )
    def test_takes_what_the_reader_takes(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "mam.toml"
        path.write_text(text)
        read_file(str(path))
        assert list(mistakes(json_schema(), tomllib.loads(text))) == []

    @each_row(
        "text",
        [
            "[defalts]\n",
            "[defaults]\ntimeout = 3\n",
            "[defaults]\ntimeout_sec = 0\n",
            "[defaults]\nagent = 3\n",
            '[defaults]\nmemory_max = "8X"\n',
            "[broker]\nport = 70000\n",
            '[broker]\ntls = "yes"\n',
            '[broker]\npassword = "in the open"\n',
            '[store]\nurl = "mysql://x"\n',
            '[agents.x]\nmode = "loud"\n',
            "[agents.x]\ncommand = []\n",
            '[agents.x]\nneeds = ["not a name"]\n',
            "[groups.x]\nslots = -1\n",
            "[keys]\ncancel = 1\n",
            "keys = 1\n",
        ],
    )
    def test_refuses_what_the_reader_refuses_with_line_and_key(
        self, tmp_path: Path, text: str
    ) -> None:
        path = tmp_path / "mam.toml"
        path.write_text(text)
        with pytest.raises(ConfigError) as refused:
            read_file(str(path))
        key = re.findall(r"[a-z_]+", text.rpartition("=")[0] or text)[-1]
        assert re.match(rf"{re.escape(str(path))}, line \d+: .*\b{key}", refused.value.message)
        assert list(mistakes(json_schema(), tomllib.loads(text))) != []


def mistakes(schema: dict[str, Any], value: Any) -> Iterator[str]:
    types = {
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
    }
    if "anyOf" in schema and all(list(mistakes(one, value)) for one in schema["anyOf"]):
        yield f"{value!r} fits none"
    if "type" in schema and not types[schema["type"]]:
        yield f"{value!r} is no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{value!r} is none of {schema['enum']}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield "it is empty"
        if not re.search(schema.get("pattern", ""), value):
            yield f"{value!r} is not {schema['pattern']}"
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield "it is empty"
        for item in value:
            yield from mistakes(schema.get("items", {}), item)
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        for key, inner in value.items():
            further = schema.get("additionalProperties", {})
            if key in known:
                yield from mistakes(known[key], inner)
            elif further is False:
                yield f"{key} is not known"
            else:
                yield from mistakes(further, inner)
    elif types["number"]:
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            yield f"{value} is out of bounds"
        if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            yield f"{value} is too small"
