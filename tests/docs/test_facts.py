"""Lists on the pages are those of the code: a word that is added there is missing here."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mam_core.agents.profiles import BUILT_IN
from mam_core.agents.tried import TRIED
from mam_core.audit import AuditEvent
from mam_core.events.event import EventName
from mam_core.events.signature import SIGNATURE_KEY, sign
from mam_core.records import DISK_ORDER, Reason, Status
from tests.docs.pages import ROOT


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


@pytest.mark.parametrize("words", [Status, Reason, AuditEvent, EventName], ids=lambda e: e.__name__)
def test_the_formats_name_every_word(words: type[Status]) -> None:
    text = page("formats")
    assert [str(one) for one in words if f"`{one}`" not in text] == []


def test_the_formats_name_the_keys_of_a_record() -> None:
    shown = set(re.findall(r"`(\w+)`", page("formats").partition("## The record")[2]))
    assert set(DISK_ORDER[:15]) <= shown


def test_every_agent_has_a_row_with_its_version_and_its_login() -> None:
    text = page("agents")
    for name in BUILT_IN:
        assert f"| `{name}` |" in text
    for name, tried in TRIED.items():
        assert tried.version in text
        assert tried.recorded in text
        (row,) = re.findall(rf"^\| {name} \|.*$", text, re.MULTILINE)
        assert "key of its provider" in row or all(f"`{one}`" in row for one in tried.variables)


def test_the_recorded_versions_are_those_of_the_screens() -> None:
    folder = ROOT / "core/mam_core/agents/screens/data"
    for name, tried in TRIED.items():
        seen = re.search(r'^seen_on = "(.*)"', (folder / f"{name}.toml").read_text(), re.MULTILINE)
        assert seen is not None
        assert tried.version in seen[1]


def test_the_program_that_checks_a_signature_does() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", page("formats"), re.DOTALL)
    known: dict[str, Any] = {}
    exec(compile(program, "formats.md", "exec"), known)
    event = {"schema_version": 1, "seq": 7, "event": "progress", "detail": "ü", "data": {"b": 1}}
    signed = {**event, SIGNATURE_KEY: sign(event, "a token of the job")}
    assert known["is_genuine"](signed, "a token of the job")
    assert not known["is_genuine"](signed, "another token")
    assert not known["is_genuine"]({**signed, "seq": 8}, "a token of the job")
    assert not known["is_genuine"](event, "a token of the job")
