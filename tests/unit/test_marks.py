"""What is written down about an attempt's processes, and what is concluded from it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.disk import Folder
from mam_core.process_mark import FIRST_NAMESPACE, ProcessMark
from mam_core.work import marks
from mam_core.work.marks import FILE, AttemptMark, end_leftovers, is_gone
from mam_core.work.orders import new_token
from tests.support.clock import FakeClock
from tests.support.process_marks import dead, us
from tests.support.rows import each_row

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(str(tmp_path)) as opened:
        yield opened


class TestOnDisk:
    def test_what_is_written_is_read_again(self, folder: Folder, tmp_path: Path) -> None:
        mark = AttemptMark.of(new_token(), us(), "host")
        assert AttemptMark.read(folder) is None
        mark.write(folder)
        assert AttemptMark.read(folder) == mark
        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600

    @each_row(
        "change",
        [
            {"token": "short"},
            {"token": "g" * 32},
            {"supervisor": None},
            {"supervisor": {"pid": 1}},
            {"supervisor": {"pid": 0, "started": "1", "boot_id": "x"}},
            {"supervisor": {"pid": -1, "started": "1", "boot_id": "x"}},
            {"namespace": "x"},
        ],
    )
    def test_nonsense_is_no_mark(
        self, folder: Folder, tmp_path: Path, change: dict[str, object]
    ) -> None:
        """A pid of 0 or -1 would mean many."""
        AttemptMark.of(new_token(), us()).write(folder)
        facts = json.loads((tmp_path / FILE).read_text())
        (tmp_path / FILE).write_text(json.dumps({**facts, **change}))
        assert AttemptMark.read(folder) is None

    @each_row("content", [b"", b"{", b"[]", b"\xff", b"{}", b"[" * 100_000])
    def test_nor_is_a_torn_file(self, folder: Folder, tmp_path: Path, content: bytes) -> None:
        (tmp_path / FILE).write_bytes(content)
        assert AttemptMark.read(folder) is None

    def test_nor_is_a_link(self, folder: Folder, tmp_path: Path) -> None:
        (tmp_path / FILE).symlink_to("/etc/passwd")
        assert AttemptMark.read(folder) is None


class TestIsGone:
    def test_not_while_the_supervisor_lives(self) -> None:
        assert is_gone(AttemptMark.of(new_token(), us())) is False

    def test_when_it_is_dead_and_nobody_carries_the_token(self) -> None:
        assert is_gone(AttemptMark.of(new_token(), dead())) is True

    def test_not_while_somebody_carries_the_token(self) -> None:
        mark = AttemptMark.of(new_token(), dead())
        carrier = subprocess.Popen(
            ["sleep", "60"], env={"PATH": os.environ["PATH"], "MAM_ATTEMPT_TOKEN": mark.token}
        )
        try:
            assert is_gone(mark) is False
            assert end_leftovers(mark, 5) == 1
            assert carrier.wait() == -15
            assert is_gone(mark) is True
        finally:
            carrier.kill()
            carrier.wait()

    def test_after_another_boot(self, clock: FakeClock) -> None:
        """Fault 6: no pid of another boot is looked at."""
        mark = AttemptMark.of(new_token(), us())
        assert is_gone(mark, clock=clock) is True

    def test_it_cannot_be_known_on_another_node(self) -> None:
        mark = AttemptMark.of(new_token(), dead(), "elsewhere")
        assert is_gone(mark) is None
        assert is_gone(mark, node="elsewhere") is True

    def test_nor_from_a_namespace_that_does_not_see_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An agent that asks about the attempts around it sees only its own processes."""
        mark = AttemptMark.of(new_token(), dead())
        monkeypatch.setattr(marks, "pid_namespace", lambda: 7)
        assert is_gone(mark) is None

    def test_a_supervisor_in_a_namespace_below_ours_is_recognised(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It has another pid there; its start is the same."""
        mark = AttemptMark.of(new_token(), us())._replace(namespace=7)
        monkeypatch.setattr(marks, "pid_namespace", lambda: FIRST_NAMESPACE)
        assert is_gone(mark) is False
        stale = mark._replace(supervisor=ProcessMark(us().pid, "1", us().boot_id))
        assert is_gone(stale) is True

    def test_who_asks_is_never_ended_though_it_carries_the_token(self) -> None:
        """A sweep that an agent itself started."""
        token = new_token()
        program = (
            "import sys\n"
            "from mam_core.work.marks import AttemptMark, end_leftovers, is_gone\n"
            "from mam_core.process_mark import ProcessMark\n"
            "from mam_core.clock import SystemClock\n"
            f"mark = AttemptMark.of({token!r}, ProcessMark(1, '1', SystemClock().boot_id()))\n"
            "print(end_leftovers(mark, 0), is_gone(mark))"
        )
        asked = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "MAM_ATTEMPT_TOKEN": token},
            capture_output=True,
            text=True,
            check=True,
        )
        assert asked.stdout.split() == ["0", "False"]
