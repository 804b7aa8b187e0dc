"""The log of an attempt: whole up to its cap, never a reason to stop."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.disk import Folder
from mam_core.work import output
from mam_core.work.output import EARLIER, OUTPUT, OutputLog


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(str(tmp_path / "attempt"), create=True) as made:
        yield made


def kept(folder: Folder, name: str) -> bytes:
    return (Path(folder.path) / name).read_bytes()


def test_all_bytes_are_kept_in_order_and_private(folder: Folder) -> None:
    with OutputLog(folder) as log:
        for part in (b"one\n", b"\xff\x00two", b"", b"three"):
            log.write(part)
    assert kept(folder, OUTPUT) == b"one\n\xff\x00twothree"
    assert os.stat(Path(folder.path) / OUTPUT).st_mode & 0o777 == 0o600


def test_past_the_cap_the_newest_half_stays_and_the_loss_is_said(folder: Folder) -> None:
    with OutputLog(folder, cap_bytes=2000) as log:
        for number in range(1000):
            log.write(b"%09d\n" % number)
        assert log.lost_bytes > 0
    together = kept(folder, EARLIER) + kept(folder, OUTPUT)
    assert len(together) <= 2000 + 100
    assert together.endswith(b"%09d\n" % 999)
    assert b"earlier bytes were let go" in together


def test_one_write_longer_than_the_cap_is_cut_in_pieces(folder: Folder) -> None:
    with OutputLog(folder, cap_bytes=1000) as log:
        log.write(b"x" * 5000 + b"the end")
    assert kept(folder, OUTPUT).endswith(b"the end")
    assert len(kept(folder, OUTPUT)) + len(kept(folder, EARLIER)) < 1200


def test_a_full_disk_costs_output_and_one_warning(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(fd: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with OutputLog(folder) as log:
        log.write(b"before ")
        with monkeypatch.context() as patch:
            patch.setattr(output, "write_all", full)
            log.write(b"lost")
            log.write(b"lost too")
        log.write(b"after")
        assert log.lost_bytes == len(b"lostlost too")
    assert kept(folder, OUTPUT) == b"before after"
    assert len(caplog.records) == 1
