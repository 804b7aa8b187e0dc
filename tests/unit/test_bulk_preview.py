"""A file of jobs is looked at before it is registered: what is promised is what happens."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.config import load
from mam_core.errors import ConfigError, InvalidField
from mam_core.operations import bulk_preview
from mam_core.operations.bulk import bulk_defaults
from mam_core.operations.bulk_preview import Kind, Stopped, preview, register_seen
from mam_core.registry import Registry
from mam_core.wiring import open_registry

JOB: dict[str, Any] = {"prompt": "Do it", "agent": "codex", "agent_session": "tmux:c"}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.chdir(tmp_path)
    with open_registry(str(tmp_path / "jobs")) as opened:
        yield opened


def write(folder: Path, *lines: dict[str, Any] | bytes) -> str:
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path = folder / "many.jsonl"
    path.write_bytes(b"\n".join(texts) + b"\n")
    return str(path)


def test_it_tells_how_many_for_whom_and_how_they_begin(registry: Registry, tmp_path: Path) -> None:
    path = write(tmp_path, JOB, b"", {**JOB, "agent": "gemini"}, {"prompt": "Else"}, JOB)
    seen = preview(registry, path, {"agent": "codex", "agent_session": "tmux:usual"})
    assert (seen.jobs, seen.bad_lines, seen.trouble) == (4, 0, "")
    assert Kind("codex", "tmux:c", 2) in seen.kinds
    assert seen.first[2] == (4, "codex", "tmux:usual", "Else")  # the empty line counts
    assert not os.path.exists(tmp_path / "jobs")  # it was only a look


def test_every_bad_line_is_named_and_keeps_the_file_out(registry: Registry, tmp_path: Path) -> None:
    artifact = {**JOB, "expected_artifacts": ["same.md"]}
    lines: list[dict[str, Any] | bytes] = [
        JOB,
        b"{nope",
        b"\xff\xfe",
        {"prompt": "p"},
        {**JOB, "timeout_sec": 0},
    ]
    lines += [{**JOB, "after": ["nobody9"]}, {**JOB, "status": "running"}, artifact, artifact]
    path = write(tmp_path, *lines)
    seen = preview(registry, path, {})
    assert [bad.number for bad in seen.bad] == [2, 3, 4, 5, 6, 7, 9]
    sentences = "\n".join(bad.sentence for bad in seen.bad)
    for words in ("not JSON", "not UTF-8", "missing: agent", "timeout_sec", "no job nobody9"):
        assert words in sentences
    assert f"line 8 is to write {tmp_path / 'same.md'} as well" in sentences
    assert seen.trouble.startswith("7 lines are bad, the first is line 2: ")
    with pytest.raises(InvalidField, match=r"^line 2: "):
        register_seen(registry, seen, {})
    assert not list(tmp_path.glob("jobs/*.json"))


def test_what_was_seen_is_registered_and_nothing_else(registry: Registry, tmp_path: Path) -> None:
    path = write(tmp_path, JOB, {**JOB, "key": "k"}, {**JOB, "key": "k"})
    seen = preview(registry, path, {})
    write(tmp_path, JOB, {**JOB, "prompt": "Something worse"})
    with pytest.raises(InvalidField, match="was changed after the preview"):
        register_seen(registry, seen, {})
    assert not os.path.exists(tmp_path / "jobs")
    write(tmp_path, JOB, {**JOB, "key": "k"}, {**JOB, "key": "k"})
    told: list[int] = []
    said = register_seen(registry, seen, {}, told.append)
    assert told == sorted(set(told))
    assert said == (
        "2 jobs registered; not registered, since a live job has their key: 1; "
        "with label and prompt of another live job: 1"
    )
    assert len(list(tmp_path.glob("jobs/*.json"))) == 2


def test_a_long_file_leaves_a_short_preview(registry: Registry, tmp_path: Path) -> None:
    big = {**JOB, "prompt": "x" * 1_000_000}
    many = [{**JOB, "agent_session": f"tmux:{n}"} for n in range(2500)]
    told: list[int] = []
    path = write(tmp_path, big, *many, *[b"{"] * 600)
    seen = preview(registry, path, {}, tell=told.append)
    assert (seen.jobs, seen.bad_lines, told) == (2501, 600, [2000])
    assert (len(seen.first), len(seen.bad), len(seen.first[0].head)) == (200, 500, 400)
    assert len(seen.kinds) + seen.other_kinds == 2501
    assert len(repr(seen)) < 200_000
    with pytest.raises(Stopped):
        preview(registry, path, {}, is_over=lambda: True)


def test_what_is_no_such_file_is_one_sentence(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in {
        "absent": "no such file or directory",
        ".": "it is a folder",
        "pipe": "it is not a plain file",
        "a\0b": "null",
    }.items():
        with pytest.raises(InvalidField, match=words) as problem:
            preview(registry, name, {})
        assert "\n" not in problem.value.message
    empty = preview(registry, write(tmp_path, b""), {})
    assert empty.trouble.endswith("many.jsonl holds no job")
    monkeypatch.setattr(bulk_preview, "MAX_BYTES", 10)
    with pytest.raises(InvalidField, match="`mam register --bulk` takes it without one"):
        preview(registry, write(tmp_path, JOB), {})


def test_the_settings_and_a_template_fill_what_lines_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mam.toml").write_text(
        '[templates.review]\nagent = "codex"\ntimeout_sec = 60\n'
        '[templates.one]\nkey = "k"\n[defaults]\ntimeout_sec = 90\nidle_timeout_sec = 30\n'
    )
    config = load()
    assert bulk_defaults(config)["timeout_sec"] == 90
    filled = bulk_defaults(config, "review")
    assert (filled["agent"], filled["timeout_sec"], filled["idle_timeout_sec"]) == ("codex", 60, 30)
    with pytest.raises(InvalidField, match="has a key"):
        bulk_defaults(config, "one")
    with pytest.raises(ConfigError, match="there is no template 'nope'"):
        bulk_defaults(config, "nope")
