"""How much memory a job may have, and what holds it to that: chosen by trying, told as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam_core.config import load
from mam_core.record_parts import MemoryCap
from mam_core.records import Job, Status
from mam_core.work import caps, cgroups, kernel_cap
from mam_core.work.caps import Bounds, Caps, Means, bounds_of, scope_argv, scope_works, words
from mam_core.work.kernel_cap import KernelCap
from mam_core.work.launch import HEADROOM

GIB = 1 << 30


def job(**fields: object) -> Job:
    return Job("abc12345", Status.PENDING, agent="claude-code").evolve(**fields)


class TestHowMuch:
    """N47: memory profiles feed MemoryMax."""

    @pytest.fixture
    def known(self, tmp_path: Path) -> Caps:
        settings = tmp_path / "mam.toml"
        settings.write_text(
            '[defaults]\nmemory_cap = "sampled"\n'
            '[groups.p1]\nmemory = "4G"\n'
            "[groups.p2]\nslots = 3\n"
            '[agents.claude-code]\nmemory = "2G"\n'
        )
        return Caps.of_settings(load(str(settings)))

    def test_n47_the_job_goes_before_its_group_and_that_before_its_agents_profile(
        self, known: Caps
    ) -> None:
        asked = job(group="p1", memory_max=GIB)
        assert known.of(asked) == MemoryCap(GIB, "sampled", "job")
        assert known.of(job(group="p1")) == MemoryCap(4 * GIB, "sampled", "group p1")
        assert known.of(job(group="p2")) == MemoryCap(2 * GIB, "sampled", "agent claude-code")
        assert known.of(job(agent="codex")) is None

    def test_n47_that_is_what_the_kernel_is_told(self) -> None:
        cap = MemoryCap(4 * GIB, Means.SCOPE, "group p1")
        bounds = bounds_of(job(memory_cap=cap))
        assert bounds == Bounds(4 * GIB, "systemd scope")
        assert "MemoryMax=4294967296" in scope_argv(bounds.memory_max or 0)

    def test_n8_the_off_switch(self, tmp_path: Path) -> None:
        (tmp_path / "mam.toml").write_text('[defaults]\nmemory_cap = "off"\n')
        cap = Caps.of_settings(load(str(tmp_path / "mam.toml"))).of(job(memory_max=GIB))
        assert cap == MemoryCap(GIB, "off", "job")
        assert bounds_of(job(memory_cap=cap)) == Bounds()
        assert words(cap) == "1,024 MiB, no cap: [defaults] memory_cap is off"

    def test_no_cap_is_said(self) -> None:
        """Fault 45: never pretended."""
        assert words(None) == "no cap"
        assert "a sudden leap can pass it" in words(MemoryCap(GIB, "sampled", "group p1"))
        assert bounds_of(job()) == Bounds()

    def test_where_we_weigh_each_process_has_a_limit_of_its_own(self) -> None:
        bounds = bounds_of(job(memory_cap=MemoryCap(GIB, "sampled", "job")))
        assert bounds == Bounds(GIB, "sampled", None, {"data": GIB + HEADROOM})
        assert bounds_of(job(memory_max=GIB)) == bounds, "also where a record says nothing of it"


class TestScope:
    """N8, INV-7."""

    def test_n8_the_command_is_built_with_both_limits(self) -> None:
        argv = scope_argv(8 * GIB)
        assert argv[:7] == (
            *("systemd-run", "--user", "--scope"),
            *("-p", "MemoryMax=8589934592", "-p", "MemorySwapMax=0"),
        )
        assert argv[-1] == "--"

    def place(self, tmp_path: Path, script: str) -> dict[str, str]:
        """An environment in which there is a `systemd-run`, and somebody for it to ask."""
        program = tmp_path / "bin" / "systemd-run"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "bus").touch()
        path = f"{program.parent}:/usr/bin:/bin"
        return {"PATH": path, "XDG_RUNTIME_DIR": str(tmp_path / "run")}

    @pytest.mark.parametrize(
        ("script", "works"),
        [
            ("echo 67108864", True),
            ("echo max", False),  # a scope without the memory controller
            ("echo 67108864; exit 1", False),
            ("exit 1", False),
        ],
    )
    def test_n8_it_is_used_only_where_the_kernel_has_the_limit(
        self, tmp_path: Path, script: str, works: bool
    ) -> None:
        environ = self.place(tmp_path, f'echo "$@" >{tmp_path}/said\n{script}')
        assert scope_works(environ) is works
        said = (tmp_path / "said").read_text()
        assert said.startswith("--user --scope -p MemoryMax=67108864 -p MemorySwapMax=0 ")

    def test_n8_off_linux_and_without_systemd_nothing_is_started(self, tmp_path: Path) -> None:
        environ = self.place(tmp_path, f"touch {tmp_path}/started; echo 67108864")
        assert not scope_works({**environ, "PATH": str(tmp_path / "nowhere")})
        (tmp_path / "run" / "bus").unlink()
        assert not scope_works(environ)
        assert not (tmp_path / "started").exists()

    def test_n8_is_found_out_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[int] = []

        def works() -> bool:
            asked.append(1)
            return True

        monkeypatch.setattr(caps, "scope_works", works)
        caps.best_means.cache_clear()
        try:
            assert [caps.best_means(), caps.best_means()] == [Means.SCOPE, Means.SCOPE]
            assert len(asked) == 1
        finally:
            caps.best_means.cache_clear()

    @pytest.mark.parametrize(
        ("limit", "swap", "in_force"),
        [("1073741824", "0", True), ("max", "0", False), ("1073741824", "max", False)],
    )
    def test_n8_a_supervisor_says_so_only_when_both_limits_hold(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, swap: str, in_force: bool
    ) -> None:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.swap.max").write_text(f"{swap}\n")
        (tmp_path / "memory.events").write_text("oom 0\noom_kill 2\n")
        holds = kernel_cap._holds(str(tmp_path), GIB)
        assert holds is in_force
        cap = KernelCap(str(tmp_path), is_ours=False)
        assert not cap.has_killed, "what was before is not of this attempt"
        (tmp_path / "memory.events").write_text("oom 1\noom_kill 3\n")
        assert cap.has_killed


#: What the kernel puts into a cgroup that somebody makes.
FILES = ("cgroup.procs", "memory.max", "memory.swap.max", "memory.oom.group", "memory.events")


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As cgroup v2 does it: a new folder has files, and goes with them. The names of those made."""
    made: list[str] = []
    mkdir, rmdir = os.mkdir, os.rmdir

    def make(path: str, mode: int = 0o777) -> None:
        mkdir(path, mode)
        made.append(os.path.basename(path))
        for name in FILES:
            Path(path, name).touch()

    def remove(path: str) -> None:
        for name in FILES:
            Path(path, name).unlink(missing_ok=True)
        rmdir(path)

    monkeypatch.setattr(os, "mkdir", make)
    monkeypatch.setattr(os, "rmdir", remove)
    return made


class TestCgroup:
    """A stand-in for the kernel: a memory cgroup cannot be had everywhere."""

    def own(self, tmp_path: Path, procs: str, controllers: str = "cpu memory") -> str:
        folder = tmp_path / "parent" / "own"
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").write_text(procs)
        (folder / "cgroup.controllers").write_text(controllers)
        (folder / "cgroup.subtree_control").write_text("")
        (folder.parent / "cgroup.subtree_control").write_text("")
        return str(folder)

    def test_a_worker_that_is_alone_in_it_goes_into_a_leaf(
        self, tmp_path: Path, kernel: list[str]
    ) -> None:
        own = self.own(tmp_path, "77\n")
        kernel.clear()
        assert cgroups.base_of(own, is_delegated=lambda folder: folder == own, pid=77) == own
        assert kernel == ["mam-worker"]
        assert Path(own, "mam-worker", "cgroup.procs").read_text() == "77"
        assert Path(own, "cgroup.subtree_control").read_text() == "+memory"

    @pytest.mark.parametrize(
        ("procs", "controllers", "given"),
        [
            ("77\n78\n", "memory", True),  # somebody else is in it
            ("77\n", "hugetlb", True),
            ("77\n", "memory", False),
        ],
    )
    def test_what_is_not_ours_alone_is_left_as_it_is(
        self, tmp_path: Path, kernel: list[str], procs: str, controllers: str, given: bool
    ) -> None:
        own = self.own(tmp_path, procs, controllers)
        kernel.clear()
        assert cgroups.base_of(own, is_delegated=lambda _: given, pid=77) is None
        assert kernel == []
        assert Path(own, "cgroup.subtree_control").read_text() == ""

    def test_one_that_was_prepared_for_us_is_used_and_tidied(
        self, tmp_path: Path, kernel: list[str]
    ) -> None:
        own = self.own(tmp_path, "77\n78\n")
        parent = os.path.dirname(own)
        Path(parent, "cgroup.subtree_control").write_text("cpu memory\n")
        os.mkdir(os.path.join(parent, "mam-0123"))
        assert cgroups.base_of(own, is_delegated=lambda folder: folder == parent) == parent
        assert [one.name for one in Path(parent).iterdir() if one.is_dir()] == ["own"]

    def test_an_attempt_gets_both_limits_and_leaves_nothing(
        self, tmp_path: Path, kernel: list[str]
    ) -> None:
        cap = KernelCap.in_force("cgroup", GIB, str(tmp_path), "0123456789abcdef0123")
        assert cap is not None
        folder = tmp_path / "mam-0123456789abcdef"
        assert (folder / "memory.max").read_text() == str(GIB)
        assert (folder / "memory.swap.max").read_text() == "0"
        os.write(cap.door, b"0")
        assert (folder / "cgroup.procs").read_text() == "0"
        cap.close()
        assert not folder.exists()

    def test_never_one_limit_without_the_other(
        self, tmp_path: Path, kernel: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """INV-7: without swap accounting it would only go on in swap."""
        monkeypatch.setattr(f"{__name__}.FILES", tuple(f for f in FILES if "swap" not in f))
        assert KernelCap.in_force("cgroup", GIB, str(tmp_path), "0" * 32) is None
        assert os.listdir(tmp_path) == []
