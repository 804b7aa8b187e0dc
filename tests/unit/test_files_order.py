"""The order of syncs and renames as the kernel saw it, and what readers see of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mam_core import api
from mam_core.registry import Registry
from mam_core.stores.base import Query
from tests.support.children import child
from tests.support.jobs import add
from tests.support.patience import PATIENCE_SEC


class TestOrderOnDisk:
    """D1, D2 and decision 19, as the kernel saw it."""

    @pytest.fixture
    def trace(self, tmp_path: Path, place: Path) -> Callable[[str], list[str]]:
        if shutil.which("strace") is None:
            pytest.skip("strace is not installed")

        def run(code: str) -> list[str]:
            output = tmp_path / "trace"
            calls = "trace=openat,close,fsync,fdatasync,rename,renameat,renameat2,flock"
            program = f"from mam_core import api\nplace = {str(place)!r}\n{code}"
            done = subprocess.run(
                ["strace", "-y", "-o", output, "-e", calls, sys.executable, "-c", program],
                capture_output=True,
                text=True,
            )
            if "ptrace" in done.stderr:
                pytest.skip(f"strace cannot trace here: {done.stderr.strip()}")
            assert done.returncode == 0, done.stderr
            return list(self.steps(output.read_text(), str(place)))

        return run

    @staticmethod
    def steps(trace: str, place: str) -> Iterator[str]:
        """The calls that matter, in a word each."""
        for line in trace.splitlines():
            if place not in line or "= -1" in line or "/.index" in line or "/.broker" in line:
                continue
            if line.startswith("flock"):
                if "events.ndjson" not in line:
                    yield "unlock" if "LOCK_UN" in line else "lock"
            elif line.startswith("openat") and ".tmp" in line and "O_CREAT" in line:
                assert "O_EXCL" in line
                assert "O_NOFOLLOW" in line
                yield "temp"
            elif line.startswith(("fsync", "fdatasync")):
                yield "sync folder" if f"<{place}>" in line else "sync temp"
            elif line.startswith("rename"):
                assert line.count(f"<{place}>") == 2, "the same directory"
                yield "rename"
            elif line.startswith("close") and "(deleted)" in line:
                yield "free"

    def test_register(self, trace: Callable[[str], list[str]]) -> None:
        steps = trace("api.register_job('p', agent='a', agent_session='s', registry_dir=place)")
        assert steps == ["lock", "temp", "sync temp", "rename", "sync folder", "unlock"]

    def test_claim(self, trace: Callable[[str], list[str]], place: Path) -> None:
        """What the old record took up is freed when nobody waits for it any more."""
        api.register_job("p", agent="a", agent_session="s", registry_dir=str(place))
        steps = trace("assert api.pick_pending('s', place)")
        assert steps == ["lock", "temp", "sync temp", "rename", "unlock", "free"]

    def test_end(self, trace: Callable[[str], list[str]], place: Path) -> None:
        job = api.register_job("p", agent="a", agent_session="s", registry_dir=str(place))
        steps = trace(f"api.update_status({job!r}, 'completed', place)")
        assert steps == ["lock", "temp", "sync temp", "rename", "sync folder", "unlock", "free"]

    def test_next_seq(self, trace: Callable[[str], list[str]], place: Path) -> None:
        job = api.register_job("p", agent="a", agent_session="s", registry_dir=str(place))
        steps = trace(f"assert api.next_seq({job!r}, place) == 1")
        assert steps == ["lock", "temp", "sync temp", "rename", "unlock", "free"]


class TestReaders:
    def test_a_reader_sees_whole_records_only(self, registry: Registry, place: Path) -> None:
        """D3, B5: through 500 writes of another process."""
        job_id = add(registry, "x" * 3000)
        program = """
import sys
from mam_core.audit import AuditLog
from mam_core.registry import Registry
from mam_core.stores.files import FilesStore
registry = Registry(FilesStore(sys.argv[1], AuditLog(sys.argv[2])))
for i in range(500):
    registry.next_seq(sys.argv[3])
print("done", flush=True)
"""
        with child(program, str(place), registry.store.audit.path, job_id) as writer:
            last = 0
            looks = 0
            while last < 500 and writer.process.poll() is None:
                job = registry.get(job_id)
                assert job.last_seq >= last
                assert len(job.prompt) == 3000
                last = job.last_seq
                looks += 1
            assert writer.hear() == "done"
        assert registry.get(job_id).last_seq == 500
        assert looks > 100

    def test_reading_does_not_wait_for_a_writer(self, registry: Registry) -> None:
        """B5."""
        job_id = add(registry)
        with registry.store.transaction():
            answers: list[object] = []

            def look() -> None:
                answers.append(registry.get(job_id).job_id)
                answers.append(len(registry.store.find(Query())[0]))
                answers.append(registry.refusals(job_id))

            reader = threading.Thread(target=look)
            reader.start()
            reader.join(PATIENCE_SEC)
            assert answers == [job_id, 1, []]
