"""What fuzzing shares: a command line that must answer, and a bound on what an answer may cost."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest

from tests.cli.conftest import Answer, Mam

#: Of the processor's time, so that a busy machine hangs nobody: an answer takes some milliseconds.
MOST_CPU_SEC = 20.0

#: How many are tried in every gate, and how many before a release.
_MANY = pytest.param(10_000, marks=[pytest.mark.release, pytest.mark.timeout(3600)])
EVERY_COUNT = pytest.mark.parametrize("count", [300, _MANY])
#: Where each one is a file and several verbs.
EVERY_SMALLER_COUNT = pytest.mark.parametrize("count", [60, _MANY])


class Endless(BaseException):
    """An answer that does not come; no `except Exception` on the way takes it."""


@contextmanager
def bounded(label: str) -> Iterator[None]:
    """What happens in here comes to an end."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Endless(label)

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU_SEC)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Door:
    """``mam`` as a person meets it: whatever lies in its folder, it answers in sentences."""

    def __init__(self, mam: Mam) -> None:
        self._mam = mam
        self.asked = 0

    def __call__(self, label: str, *words: str | Path) -> Answer:
        self.asked += 1
        with bounded(f"{label}: mam {' '.join(map(str, words))}"):
            answer = self._mam(*words)
        said = f"{label}: mam {' '.join(map(str, words))} -> {answer.code}: {answer.err[-600:]}"
        assert answer.code in (0, 1, 2, 3), said
        assert "a mistake in mam" not in answer.err, said
        assert all(line.startswith("mam: ") for line in answer.err.splitlines()), said
        assert answer.code == 0 or answer.err or answer.code == 3, said
        return answer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("USER", "ann")
    return project


class Heard(NamedTuple):
    """What was printed, also where that is no text: a log is passed on as it is stored."""

    capture: pytest.CaptureFixture[bytes]

    def readouterr(self) -> tuple[str, str]:
        out, err = self.capture.readouterr()
        return out.decode(errors="replace"), err.decode()


@pytest.fixture
def mam(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Mam:
    """No relay is left behind: ten thousand commands would leave ten thousand.

    The hosts that damaged records name are asked all the same, and not waited for.
    """
    monkeypatch.setattr("mam_core.operations.relay.leave_behind", lambda *args, **more: True)
    monkeypatch.setattr("mam_core.operations.elsewhere.PATIENCE_SEC", 0.05)
    return Mam(folder, Heard(capsysbinary))


@pytest.fixture
def door(mam: Mam) -> Door:
    return Door(mam)


Tried = Callable[[str, int], None]


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Tried:
    """A line of the release's table."""

    def tell(name: str, count: int) -> None:
        record_property(f"inputs: {name}", {"tried": count, "exceptions": 0})

    return tell
