"""The sessions as a table that fits, as JSON, and as words that a shell completes."""

from __future__ import annotations

import pytest

from mam_core.cli.sessions import _columns
from mam_core.operations.sessions import Seen, SessionState
from mam_core.process_mark import ProcessMark
from mam_core.safe_text import cell_width
from mam_core.sessions import Session, SessionFolder
from mam_core.table import render
from tests.cli.conftest import Mam


def session(name: str, **more: object) -> Session:
    known: dict[str, object] = {
        "label": f"tmux:{name}",
        "agent": "claude-code",
        "mode": "stream",
        "workdir": f"/somewhere/projects/stars/.mam/worktrees/{name}/src",
        "settings_from": "/somewhere/projects/stars",
        "created_at": "2026-06-19T09:00:00Z",
        "created_by": "ann",
        "node": "here",
    }
    return Session(name, **{**known, **more})  # type: ignore[arg-type]  # fields by name


SEEN = [
    Seen(
        "claude-a",
        SessionState.ALIVE,
        session("claude-a", label="tmux:claude", branch="mam/claude-a"),
        worker=ProcessMark(1, "1", "x"),
        jobs=("6neb2tua",),
        queued=12,
        memory=314_572_800,
        cpu_sec=83.5,
    ),
    Seen("x" * 64, SessionState.GONE, session("x" * 64)),
    Seen("evil", SessionState.DAMAGED, note="it is not JSON: \x1b[2J"),
]
NOW = 1781862000.0  # 2026-06-19, 09:40


def table(width: int | None) -> list[str]:
    return list(render(_columns(SEEN, NOW), width))


def test_a_wide_table_has_it_all() -> None:
    lines = table(None)
    assert lines[0].split() == [
        *("SESSION", "LABEL", "STATE", "AGENT", "MODE", "JOB", "QUEUE", "MEM", "CPU", "AGE"),
        *("FOLDER", "WORKTREE"),
    ]
    words = lines[1].split()
    assert words[:9] == [
        *("claude-a", "tmux:claude", "alive", "claude-code", "stream", "6neb2tua"),
        *("12", "300M", "1m"),
    ]
    assert words[-1] == "mam/claude-a"


@pytest.mark.parametrize("width", [60, 80, 40, 20])
def test_a_narrow_table_fits_and_keeps_what_counts(width: int) -> None:
    lines = table(width)
    assert all(cell_width(line) <= width for line in lines)
    assert "\x1b" not in "".join(lines)
    if width >= 60:
        assert {"SESSION", "STATE", "JOB"} <= set(lines[0].split())
        assert "6neb2tua" in lines[1]


def test_none_are_an_empty_table_and_an_empty_list(mam: Mam) -> None:
    assert mam.ok("sessions").lines[0].split()[:2] == ["SESSION", "STATE"]
    assert mam.ok("sessions", "--json").json == []
    assert not mam.registry.exists()


def test_names_are_completed_and_pools_where_they_make_sense(mam: Mam) -> None:
    folder = SessionFolder(str(mam.registry))
    for name in ("pool-1", "pool-2"):
        folder.put(session(name, label="tmux:pool"))

    def offered(*words: str) -> list[str]:
        return [line.split("\t")[0] for line in mam.ok("__complete", "zsh", *words).lines]

    assert offered("attach", "") == ["pool-1", "pool-2"]
    assert sorted(set(offered("stop", "po"))) == ["pool", "pool-1", "pool-2"]
    assert offered("stop", "pool-1", "") == ["pool-2", "pool"]
    assert "--worktree" in offered("spawn", "--w")
