"""Reading what attempts printed: the end first, then only what is new, also over a turn-over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam_core.disk import Folder
from mam_core.errors import UnsafePath
from mam_core.operations.output import NoOutput, attempts_with_output, read_output
from mam_core.registry import Registry
from mam_core.work.output import OutputLog
from tests.console.detail_story import output_of, registry_in
from tests.support.clock import FakeClock
from tests.support.jobs import add


@pytest.fixture
def registry(tmp_path: Path, clock: FakeClock) -> Registry:
    return registry_in(tmp_path, clock)


@pytest.fixture
def job_id(registry: Registry) -> str:
    return add(registry)


def test_the_end_is_read_first_and_then_only_what_is_new(registry: Registry, job_id: str) -> None:
    log = output_of(registry, job_id, 1)
    log.write_bytes(b"0123456789")
    piece = read_output(registry, job_id, 1, limit=4)
    assert (piece.data, piece.skipped, piece.is_anew, piece.size) == (b"6789", 6, True, 10)
    with log.open("ab") as file:
        file.write(b"ab")
    piece = read_output(registry, job_id, 1, piece.place, limit=4)
    assert (piece.data, piece.skipped, piece.is_anew) == (b"ab", 0, False)
    assert read_output(registry, job_id, 1, piece.place).data == b""


def test_a_reader_that_is_far_behind_jumps_and_is_told_so(registry: Registry, job_id: str) -> None:
    log = output_of(registry, job_id, 1)
    log.write_bytes(b"a")
    place = read_output(registry, job_id, 1).place
    log.write_bytes(b"a" + b"b" * 100)
    piece = read_output(registry, job_id, 1, place, limit=10)
    assert (piece.data, piece.skipped, piece.is_anew) == (b"b" * 10, 90, False)


def test_a_log_that_turns_over_is_followed_without_a_gap(registry: Registry, job_id: str) -> None:
    folder = Folder.open(str(output_of(registry, job_id, 1).parent))
    with folder, OutputLog(folder, cap_bytes=40) as log:
        log.write(b"first line\n")
        piece = read_output(registry, job_id, 1)
        log.write(b"second\n")
        log.write(b"third line\n")  # does not fit: the file turns over
        assert (Path(folder.path) / "output.log.1").exists()
        piece = read_output(registry, job_id, 1, piece.place)
        assert (piece.data, piece.is_anew) == (b"second\nthird line\n", False)


def test_a_log_that_became_shorter_is_read_anew(registry: Registry, job_id: str) -> None:
    log = output_of(registry, job_id, 1)
    log.write_bytes(b"long enough")
    place = read_output(registry, job_id, 1).place
    log.write_bytes(b"new")
    piece = read_output(registry, job_id, 1, place)
    assert (piece.data, piece.is_anew) == (b"new", True)


def test_which_attempts_have_output(registry: Registry, job_id: str) -> None:
    assert attempts_with_output(registry, job_id) == ()
    for attempt in (10, 2, 1):
        output_of(registry, job_id, attempt).write_bytes(b"x")
    output_of(registry, job_id, 3)  # a folder without a log
    assert attempts_with_output(registry, job_id) == (1, 2, 10)


def test_why_there_is_none(registry: Registry, job_id: str) -> None:
    with pytest.raises(NoOutput, match="no output is kept"):
        read_output(registry, job_id, 1)
    output_of(registry, job_id, 1)
    with pytest.raises(NoOutput, match="has printed nothing"):
        read_output(registry, job_id, 1)


def test_a_link_is_not_followed(registry: Registry, job_id: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.symlink(secret, output_of(registry, job_id, 1))
    with pytest.raises(UnsafePath):
        read_output(registry, job_id, 1)
