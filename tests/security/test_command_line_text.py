"""Promise 7 for the command line: every verb's tables, answers and errors on a real terminal.

Whatever strangers wrote into records, histories, output, settings and file names, and whatever
a person pastes as an argument: the bytes on the terminal are text and our own colours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from unicodedata import category

import pytest

from mam_core.cli.main import VERBS
from mam_core.registry import Registry
from mam_core.safe_text import safe
from mam_core.wiring import open_registry
from tests.console.detail_story import output_of
from tests.console.hostile.generated import hostile_text
from tests.console.hostile.payloads import LONG, MARK, everything, file_name, one_line, printable
from tests.support.handles import close_later
from tests.support.pty_host import Written, on_a_terminal
from tests.support.stream import Kind, pieces

#: Controls, formats (among them all that turn the direction round), halves, and odd line ends.
_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_OURS = {"CSI m", "control '\\r'", "control '\\n'", "control '\\t'"}


def foreign(written: Written) -> list[str]:
    """What stands there that is neither text nor ours."""
    is_json = "--json" in written.words or written.words[0] == "get"
    found = []
    for piece in pieces(written.data):
        if piece.kind is not Kind.TEXT:
            if piece.name not in _OURS:
                found.append(f"{written.words}: {piece.name}")
        elif is_json:  # it spells out what a table would cut down
            odd = {one for one in piece.text if category(one) in _ACTING and one != "\u200d"}
            found += [f"{written.words}: {one!r}" for one in odd]
        elif safe(piece.text) != piece.text:
            found.append(f"{written.words}: {piece.text[:80]!r}")
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return project


@pytest.fixture
def registry(folder: Path) -> Iterator[Registry]:
    made = close_later(open_registry(str(folder / ".mam" / "jobs")))
    yield made
    made.store.close()


def _jobs(registry: Registry, folder: Path, count: int) -> list[str]:
    """Each is hostile in every field that takes words; the first one runs, with all it says."""
    workdir = folder / file_name("dir")
    workdir.mkdir()
    requests = [
        {
            "prompt": hostile_text(number) if number else everything(),
            "agent": printable(),
            "agent_session": "tmux:nobody" if number < 2 else f"tmux:{printable()}",
            "group": printable(),
            "model": printable(),
            "workdir": str(workdir),
            "expected_artifacts": [file_name("there"), file_name("missing")],
            "validate": "true " + one_line().replace("\x00", "")[:50],
        }
        for number in range(count)
    ]
    ids = [job.job_id for job in registry.register(requests, allow_collision=True)]
    assert registry.claim("tmux:nobody") is not None
    text = everything()
    registry.publish(ids[0], "progress", detail=text, data={text: text, "b": [text, {text: text}]})
    registry.publish(ids[0], "state", detail=text, data={"state": text, "rule": text})
    registry.publish(ids[0], "log", detail=LONG[:60_000])
    log = output_of(registry, ids[0], 1)
    log.write_bytes(everything(utf8=False).encode("utf-8", "surrogatepass") + b"\xff\x9b31m\n")
    path = folder / ".mam" / "jobs" / f"{ids[1]}.json"
    record = json.loads(path.read_bytes())
    record |= {"detail": one_line(utf8=False), "node": one_line(), f"{MARK}\x1b[31m": one_line()}
    path.write_text(json.dumps(record | {"after": [ids[0]], "reason": one_line()}))
    (path.parent / f"{file_name('odd')}.json").write_text(text)
    (path.parent / "broken\x1b[31m.json").write_text("{")
    return ids


def _looks(jobs: list[str]) -> list[list[str]]:
    found: list[list[str]] = [
        *(["list"], ["list", "--json"], ["attention"], ["attention", "--json"], ["logs", "--list"]),
        *(["replay", "--at", "-1s"], ["sessions"], ["export", "-o", "out.md"], ["doctor"]),
        *(["dispatch", "status", "--file", "tasks"], ["dispatch", "summary", "--file", "tasks"]),
        *(["config"], ["config", "templates"], ["config", "--config", "odd.toml"]),
        *(["export", "-o", file_name("no")], ["migrate", "--from", file_name("nowhere")]),
    ]
    for job_id in jobs[:2]:
        for verb in ("get", "logs", "why", "diff", "verify", "status", "answer", "cancel", "retry"):
            found.append([verb, job_id])
        found += [["why", job_id, "--history"], ["logs", job_id, "--json"]]
    return [*found, ["output", jobs[0]]]


def _settings(folder: Path) -> None:
    text = json.dumps(one_line().replace("\x7f", ""), ensure_ascii=False)  # in TOML's words, too
    lines = [f"[templates.{json.dumps(printable(), ensure_ascii=False)}]", f"prompt = {text}"]
    (folder / "mam.toml").write_text("\n".join(lines) + "\n")
    (folder / "odd.toml").write_text(
        f"[defaults]\n{json.dumps(printable(), ensure_ascii=False)} = {text}\n"
    )
    tasks = {one_line(): {"status": "failed", "error": everything(), "node": one_line()}}
    (folder / "tasks").write_text(json.dumps({"version": 1, "tasks": tasks}))


def _mistakes() -> list[list[str]]:
    """Every verb with words that nobody should have pasted."""
    pasted = one_line().replace("\x00", "")
    found = [[pasted], ["--registry-dir", pasted, "list"], ["--config", pasted, "list"]]
    for verb in VERBS:
        found += [[verb, pasted], [verb, f"--{pasted}"], [verb, "--job", pasted]]
    return [*found, ["list", "--status", pasted], ["replay", "--at", pasted]]


@pytest.mark.parametrize(
    "count", [30, pytest.param(2000, marks=[pytest.mark.release, pytest.mark.timeout(1800)])]
)
def test_only_text_and_our_own_colours_reach_the_terminal(
    folder: Path,
    registry: Registry,
    count: int,
    record_property: Callable[[str, object], None],
) -> None:
    _settings(folder)
    jobs = _jobs(registry, folder, count)
    calls = [*_looks(jobs), *_mistakes(), *(["why", job_id] for job_id in jobs[2::50])]
    written = on_a_terminal(folder, calls)
    first = written[0]
    assert first.code == 0, first.data
    assert b"pending" in first.data, first.data[:2000]  # which columns fit depends on the names
    assert not [odd for one in written for odd in foreign(one)]
    broken = [one for one in written if one.code not in (0, 1, 2, 3)]
    assert not broken
    told = b"".join(one.data for one in written)
    assert told.count(MARK.encode()) > len(calls), "the words did arrive"
    assert b"Traceback" not in told
    assert b"mistake in mam" not in told
    record_property("inputs: hostile jobs on a terminal", {"tried": count, "leaks": 0})
    # What is exported is opened with other programs: their terminals are no worse off.
    page = (folder / "out.md").read_bytes()
    assert b"\x1b" not in page
    assert MARK.encode() in page
