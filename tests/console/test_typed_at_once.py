"""Keys in one read of a real terminal: each reaches what the one before it opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mam_core.records import Status
from mam_core.wiring import open_registry
from tests.console.staging import add
from tests.console.typed_ahead import ESC, TYPED, Typed
from tests.support.terminal import Terminal, terminal
from tests.support.tmux import private_tmux

JOB = "The only one"


@contextmanager
def board(folder: Path) -> Iterator[Terminal]:
    """With one job, which nothing that is typed may touch."""
    with private_tmux(), open_registry(str(folder / "jobs")) as registry:
        job_id = add(registry, JOB)
        with terminal(folder) as seen:
            seen.run("mam --registry-dir jobs")
            seen.until("mam board", JOB)
            yield seen
            seen.press("C-q")
            seen.until_prompt()
        job = registry.get(job_id)
        assert (job.status, job.revision) == (Status.PENDING, 1)


def try_out(seen: Terminal, typed: Typed) -> None:
    seen.send(typed.keys.encode())
    shown = seen.until(*typed.shows)
    assert not [words for words in typed.hides if words in shown]
    seen.send(f"{3 * ESC}1".encode())  # whatever is open is left, one after the other
    seen.until_gone(*(words for words in typed.shows if words != "mam board"))
    seen.until("mam board", JOB, "? keys  enter open")


def test_a_string_of_keys_in_one_read(tmp_path: Path) -> None:
    with board(tmp_path) as seen:
        for typed in TYPED[::3]:
            try_out(seen, typed)


@pytest.mark.release
@pytest.mark.timeout(900)
@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: repr(typed.keys))
def test_a_hundred_times(tmp_path: Path, typed: Typed) -> None:
    with board(tmp_path) as seen:
        for _ in range(100):
            try_out(seen, typed)
