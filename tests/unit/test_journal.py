"""The journal: intents are whole or they are not there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.disk import Folder
from mam_core.errors import MamError
from mam_core.stores import journal
from mam_core.stores.journal import JOURNAL_NAME, Intent, Journal

ONE = Intent([(".a.1.tmp", "a.json")], [("a", {"event": "registered", "revision": 1})])
TWO = Intent([(".b.2.tmp", "b.json"), ("b.json", ".archive/x/b.json")], [])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(str(tmp_path / "jobs"), create=True) as made:
        yield made


@pytest.fixture
def kept(folder: Folder) -> Iterator[Journal]:
    made = Journal(folder)
    yield made
    made.close()


def path_of(folder: Folder) -> Path:
    return Path(folder.path) / JOURNAL_NAME


def test_what_is_begun_is_read_back_by_the_next_holder(folder: Folder, kept: Journal) -> None:
    assert kept.is_empty()
    kept.begin(ONE)
    kept.begin(TWO, sync=True)
    other = Journal(folder)
    assert not other.is_empty()
    assert other.pending() == [ONE, TWO]
    other.clear()
    other.close()
    assert kept.is_empty()
    assert kept.pending() == []


def test_it_is_readable_by_nobody_else(folder: Folder, kept: Journal) -> None:
    """Decision 10: audit lines pass through it."""
    kept.begin(ONE)
    assert stat.S_IMODE(path_of(folder).stat().st_mode) == 0o600


def test_a_line_torn_at_any_byte_was_never_written(folder: Folder, kept: Journal) -> None:
    """D4: what a power cut leaves is no intent."""
    kept.begin(ONE)
    first = path_of(folder).stat().st_size
    kept.begin(TWO)
    data = path_of(folder).read_bytes()
    for end in range(first, len(data) - 1):
        path_of(folder).write_bytes(data[:end])
        assert kept.pending() == [ONE]
    for end in range(first - 1):
        path_of(folder).write_bytes(data[:end])
        assert kept.pending() == []


def test_a_flipped_byte_makes_its_line_nothing(folder: Folder, kept: Journal) -> None:
    kept.begin(ONE)
    kept.begin(TWO)
    data = path_of(folder).read_bytes()
    for place in range(len(data)):
        path_of(folder).write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert len(kept.pending()) <= 1
        assert all(intent in (ONE, TWO) for intent in kept.pending())


@pytest.mark.parametrize("junk", [b"\0" * 4096, b"\xff\n" * 9, b"00000000 {}\n", b"no journal\n"])
def test_zeros_and_junk_are_no_intents(folder: Folder, kept: Journal, junk: bytes) -> None:
    path_of(folder).write_bytes(junk)
    assert kept.pending() == []


class TestDebts:
    def test_owed_lines_replace_what_was_done(self, kept: Journal) -> None:
        kept.begin(ONE)
        assert kept.owe(ONE.audit) == 0
        assert kept.pending() == [Intent([], ONE.audit)]
        assert kept.owe([]) == 0
        assert kept.is_empty()

    def test_are_seen_by_a_holder_whose_handle_is_older(
        self, folder: Folder, kept: Journal
    ) -> None:
        """Debts replace the file, and another process has the old one open."""
        kept.begin(ONE)
        kept.clear()
        other = Journal(folder)
        other.owe([("a", {"event": "owed"})])
        assert not kept.is_empty()
        assert kept.pending() == [Intent([], [("a", {"event": "owed"})])]
        kept.clear()
        kept.begin(TWO)
        assert not other.is_empty()
        assert other.pending() == [TWO]
        other.close()

    def test_past_the_cap_the_oldest_are_given_up(
        self, folder: Folder, kept: Journal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(journal, "MAX_DEBT_BYTES", 2000)
        debts: list[tuple[str, dict[str, Any]]] = [
            (f"job{i}", {"event": "x", "pad": "y" * 100}) for i in range(100)
        ]
        lost = kept.owe(debts)
        (left,) = kept.pending()
        assert 0 < len(left.audit) < 20
        assert lost == 100 - len(left.audit)
        assert left.audit == debts[lost:]
        assert path_of(folder).stat().st_size <= 2000

    def test_one_debt_beyond_the_cap_is_given_up_too(
        self, kept: Journal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(journal, "MAX_DEBT_BYTES", 50)
        assert kept.owe([("a", {"event": "x" * 100})]) == 1
        assert kept.is_empty()


def test_a_failed_write_leaves_no_half_of_a_line(
    folder: Folder, kept: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.begin(ONE)
    before = path_of(folder).read_bytes()

    write = os.pwrite

    def half(fd: int, data: bytes, at: int) -> int:
        if at > len(before):
            raise OSError(28, "No space left on device")
        return write(fd, data[: len(data) // 2], at)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        with pytest.raises(OSError, match="No space"):
            kept.begin(TWO)
    assert path_of(folder).read_bytes() == before


@pytest.mark.parametrize("plant", ["link", "pipe", "folder"])
def test_a_planted_journal_is_refused_every_time(
    folder: Folder, kept: Journal, tmp_path: Path, plant: str
) -> None:
    """Not only at the first look."""
    target = tmp_path / "precious"
    target.write_text("untouched")
    match plant:
        case "link":
            path_of(folder).symlink_to(target)
        case "pipe":
            os.mkfifo(path_of(folder))
        case _:
            path_of(folder).mkdir()
    for _ in range(2):
        with pytest.raises((OSError, MamError)):
            kept.begin(ONE)
    assert target.read_text() == "untouched"
