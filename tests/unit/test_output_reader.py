"""Reading an agent's outputs beside everything else: whole into the log, bounded in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mam_core.clock import SystemClock
from mam_core.disk import Folder, write_all
from mam_core.work.output import OUTPUT, OutputLog
from mam_core.work.reader import OutputReader, Printed
from tests.support.patience import eventually

_BLOCK = b"x" * 1023 + b"\n"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(str(tmp_path / "attempt"), create=True) as made:
        yield made


class Printing:
    """Two outputs that a test writes to, and their reader."""

    def __init__(self, folder: Folder, *, newest_only: bool, held_bytes: int) -> None:
        self.log = OutputLog(folder)
        stdout, self.stdout = os.pipe()
        stderr, self.stderr = os.pipe()
        self.reader = OutputReader(
            {stdout: False, stderr: True},
            self.log,
            SystemClock(),
            newest_only=newest_only,
            held_bytes=held_bytes,
        )

    def finish(self) -> None:
        os.close(self.stdout)
        os.close(self.stderr)

    def rest(self) -> list[Printed]:
        found: list[Printed] = []

        def is_over() -> bool:
            found.extend(self.reader.take())
            return self.reader.is_over

        eventually(is_over, "all was read")
        return found


@pytest.fixture
def printing(folder: Folder) -> Iterator[Callable[..., Printing]]:
    made: list[Printing] = []

    def start(*, newest_only: bool = False, held_bytes: int = 1 << 20) -> Printing:
        made.append(Printing(folder, newest_only=newest_only, held_bytes=held_bytes))
        return made[-1]

    yield start
    for one in made:
        one.reader.close()
        one.log.close()


def logged(folder: Folder) -> bytes:
    path = Path(folder.path) / OUTPUT
    return path.read_bytes() if path.exists() else b""


def test_both_outputs_come_whole_and_each_by_its_name(
    printing: Callable[..., Printing], folder: Folder
) -> None:
    one = printing()
    os.write(one.stdout, b"said\n")
    os.write(one.stderr, b"aside\n")
    one.finish()
    found = one.rest()
    assert b"".join(data for data, aside, _ in found if not aside) == b"said\n"
    assert b"".join(data for data, aside, _ in found if aside) == b"aside\n"
    assert sorted(logged(folder).splitlines()) == [b"aside", b"said"]


def test_text_that_nobody_takes_is_read_on_and_only_its_end_is_kept(
    printing: Callable[..., Printing], folder: Folder
) -> None:
    """A worker that waits for its registry does not hold up a build."""
    one = printing(newest_only=True, held_bytes=64 * 1024)
    for number in range(1024):  # far more than a pipe and the buffer hold
        os.write(one.stdout, b"%07d " % number + _BLOCK[8:])
    one.finish()
    eventually(lambda: len(logged(folder)) == 1024 * len(_BLOCK), "the log has all of it")
    found = b"".join(piece.data for piece in one.rest())
    assert one.reader.dropped_bytes > 0
    assert len(found) + one.reader.dropped_bytes == 1024 * len(_BLOCK)
    assert found.splitlines()[-1].startswith(b"0001023 ")


def test_of_a_stream_nothing_is_dropped_and_the_agent_waits(
    printing: Callable[..., Printing], folder: Folder
) -> None:
    one = printing(held_bytes=64 * 1024)
    whole = 1024 * len(_BLOCK)
    agent = threading.Thread(target=lambda: write_all(one.stdout, _BLOCK * 1024))
    agent.start()
    eventually(lambda: len(logged(folder)) > 64 * 1024, "the buffer is full")
    assert agent.is_alive()
    found = 0
    while found < whole:
        found += sum(len(piece.data) for piece in one.reader.take())
    agent.join()
    one.finish()
    assert one.rest() == []
    assert (found, one.reader.dropped_bytes) == (whole, 0)


def test_a_reader_is_closed_while_its_outputs_are_open_or_its_buffer_is_full(
    printing: Callable[..., Printing],
) -> None:
    one = printing(held_bytes=1)
    os.write(one.stdout, _BLOCK)
    os.write(one.stdout, _BLOCK)
    eventually(lambda: one.reader.has_news, "something was read")
    one.finish()
