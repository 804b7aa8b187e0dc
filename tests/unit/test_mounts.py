"""A network file system is refused: with a mount table of our own making."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam_core.audit import AuditLog
from mam_core.disk import Folder
from mam_core.errors import NetworkFileSystem
from mam_core.registry import Registry
from mam_core.stores import mounts
from mam_core.stores.files import FilesStore
from tests.support.handles import close_later
from tests.support.jobs import add

FakeMount = Callable[[str], None]


@pytest.fixture
def pretend_to_be_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMount:
    """Makes the kernel's table say that the test's folder is on some file system."""
    state = os.stat(tmp_path)
    device = f"{os.major(state.st_dev)}:{os.minor(state.st_dev)}"

    def pretend(kind: str, device: str = device) -> None:
        table = (
            "22 1 0:999 / / rw shared:1 - ext4 /dev/root rw\n"
            f"23 22 {device} / {tmp_path} rw,nosuid - {kind} server:/export rw,vers=4.2\n"
            "24 22 0:998 / /proc rw - proc proc rw\n"
        )

        def fake_open(path: Any, *args: Any, **kwargs: Any) -> Any:
            if path == "/proc/self/mountinfo":
                return io.StringIO(table)
            return open(path, *args, **kwargs)

        monkeypatch.setattr(mounts, "open", fake_open, raising=False)
        monkeypatch.setattr(mounts, "_known", set())

    return pretend


def a_store(tmp_path: Path, **options: Any) -> FilesStore:
    return close_later(
        FilesStore(str(tmp_path / "jobs"), AuditLog(str(tmp_path / "logs")), **options)
    )


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"])
def test_a_network_file_system_is_refused_by_name_before_anything_is_written(
    tmp_path: Path, pretend_to_be_on: FakeMount, kind: str
) -> None:
    """B7."""
    pretend_to_be_on(kind)
    with pytest.raises(NetworkFileSystem, match=rf"network file system \({kind}\)"):
        add(Registry(a_store(tmp_path)))
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == []


def test_the_flag_overrides(tmp_path: Path, pretend_to_be_on: FakeMount) -> None:
    """B7."""
    pretend_to_be_on("nfs4")
    registry = Registry(a_store(tmp_path, allow_network=True))
    assert registry.get(add(registry)).agent == "shell"


def test_reading_is_not_refused(tmp_path: Path, pretend_to_be_on: FakeMount) -> None:
    job_id = add(Registry(a_store(tmp_path)))
    pretend_to_be_on("nfs4")
    assert a_store(tmp_path).get(job_id).job_id == job_id


@pytest.mark.parametrize("kind", ["fuse", "fuse.mergerfs", "virtiofs"])
def test_a_doubtful_one_is_warned_of_and_used(
    tmp_path: Path, pretend_to_be_on: FakeMount, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B7."""
    pretend_to_be_on(kind)
    add(Registry(a_store(tmp_path)))
    assert f"is on {kind}" in caplog.text


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuseblk", "zfs"])
def test_a_local_one_is_used_in_silence(
    tmp_path: Path, pretend_to_be_on: FakeMount, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    pretend_to_be_on(kind)
    add(Registry(a_store(tmp_path)))
    assert caplog.text == ""


def test_the_longest_mount_point_decides_where_devices_do_not_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """btrfs gives each subvolume a device of its own."""
    table = (
        "22 1 0:990 / / rw - ext4 /dev/root rw\n"
        f"23 22 0:991 / {tmp_path} rw - btrfs /dev/x rw\n"
        f"24 22 0:992 / {tmp_path}-other rw - nfs s:/ rw\n"
    )
    monkeypatch.setattr(mounts, "open", lambda *a, **k: io.StringIO(table), raising=False)
    with Folder.open(str(tmp_path)) as folder:
        assert mounts.file_system_of(folder) == "btrfs"


def test_without_a_table_nothing_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 30: macOS has none."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(mounts, "open", refuse, raising=False)
    with Folder.open(str(tmp_path)) as folder:
        assert mounts.file_system_of(folder) == ""
        mounts.check_local(folder)


def test_a_device_is_looked_up_once_in_a_process(
    tmp_path: Path, pretend_to_be_on: FakeMount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that opens the registry for each claim does not have the kernel write its table."""
    pretend_to_be_on("ext4")
    with Folder.open(str(tmp_path)) as folder:
        mounts.check_local(folder)
        monkeypatch.setattr(mounts, "file_system_of", lambda _: pytest.fail("asked again"))
        mounts.check_local(folder)


def test_a_device_that_is_refused_or_doubtful_is_looked_up_each_time(
    tmp_path: Path, pretend_to_be_on: FakeMount
) -> None:
    pretend_to_be_on("virtiofs")
    with Folder.open(str(tmp_path)) as folder:
        mounts.check_local(folder)
        pretend_to_be_on("nfs4")
        for _ in range(2):
            with pytest.raises(NetworkFileSystem):
                mounts.check_local(folder)
