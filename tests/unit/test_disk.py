"""Files and folders: what is believed, what is refused, and with which modes things are made."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mam_core.disk import Folder, explain
from mam_core.errors import StoreError, SyncFailed, UnsafePath

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(str(tmp_path / "jobs"), create=True) as made:
        yield made


def inside(folder: Folder, name: str) -> Path:
    return Path(folder.path) / name


class TestReading:
    def test_a_plain_file_comes_whole_with_its_state(self, folder: Folder) -> None:
        for data in (b"", b"x", b"y" * 300_000):
            folder.write("a.json", data)
            read, state = folder.read("a.json", 1_000_000)
            assert (read, state.st_size) == (data, len(data))

    def test_the_limit_is_named(self, folder: Folder) -> None:
        folder.write("a.json", b"x" * 11)
        assert folder.read("a.json", 11)[0] == b"x" * 11
        with pytest.raises(UnsafePath, match="has 11 bytes; the limit is 10"):
            folder.read("a.json", 10)

    @pytest.mark.parametrize(
        ("plant", "says"),
        [
            (lambda path: path.symlink_to("/etc/passwd"), "is a symbolic link"),
            (lambda path: path.symlink_to("nowhere"), "is a symbolic link"),
            (lambda path: os.mkfifo(path), "is a pipe, not a file"),
            (lambda path: path.mkdir(), "is a folder, not a file"),
        ],
    )
    def test_anything_else_is_named_and_never_hangs(
        self, folder: Folder, plant: Callable[[Path], None], says: str
    ) -> None:
        """A18."""
        plant(inside(folder, "a.json"))
        with pytest.raises(UnsafePath, match=says):
            folder.read("a.json", 100)

    def test_a_socket_is_named(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        """A18."""
        monkeypatch.chdir(folder.path)  # the path of a socket must be short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("a.json")
            with pytest.raises(UnsafePath, match="is a socket or a device"):
                folder.read("a.json", 100)

    @as_root
    def test_a_device_is_named(self, folder: Folder) -> None:
        """A18."""
        try:
            os.mknod(inside(folder, "a.json"), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("no devices can be made in this container")
        with pytest.raises(UnsafePath, match="device"):
            folder.read("a.json", 100)

    @as_root
    def test_a_file_of_a_stranger_is_not_believed(self, folder: Folder) -> None:
        folder.write("a.json", b"x")
        os.chown(inside(folder, "a.json"), 65534, 65534)
        with pytest.raises(UnsafePath, match="belongs to user 65534"):
            folder.read("a.json", 100)

    @as_root
    def test_a_file_of_the_folders_owner_is(self, folder: Folder) -> None:
        """Root looks into a person's registry."""
        folder.write("a.json", b"x")
        os.chown(inside(folder, "a.json"), 65534, 65534)
        os.chown(folder.path, 65534, 65534)
        with Folder.open(folder.path) as again:
            assert again.read("a.json", 100)[0] == b"x"
            with pytest.raises(UnsafePath, match="belongs to user 65534 and you are 0"):
                again.check_owner()


class TestMaking:
    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
    def test_modes_do_not_depend_on_the_umask(self, tmp_path: Path, umask: int) -> None:
        """A19, decision 10."""
        before = os.umask(umask)
        try:
            path = str(tmp_path / "project/.mam/jobs")
            with Folder.open(path, create=True) as folder:
                folder.write("a.json", b"x")
                folder.subfolder("sub", create=True).close()
        finally:
            os.umask(before)
        modes = {
            str(made.relative_to(tmp_path)): made.stat().st_mode & 0o777
            for made in tmp_path.rglob("*")
        }
        assert modes == {
            "project": 0o700,
            "project/.mam": 0o700,
            "project/.mam/.gitignore": 0o600,
            "project/.mam/jobs": 0o700,
            "project/.mam/jobs/a.json": 0o600,
            "project/.mam/jobs/sub": 0o700,
        }

    def test_our_folder_is_ignored_by_git(self, tmp_path: Path) -> None:
        """F17."""
        Folder.open(str(tmp_path / ".mam/jobs"), create=True).close()
        assert (tmp_path / ".mam/.gitignore").read_text() == "*\n"

    def test_a_folder_that_is_a_link_or_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        (tmp_path / "file").touch()
        for create in (False, True):
            with pytest.raises(UnsafePath, match="is a symbolic link: name the folder itself"):
                Folder.open(str(tmp_path / "link"), create=create)
            with pytest.raises(UnsafePath, match="is not a folder"):
                Folder.open(str(tmp_path / "file"), create=create)
        with pytest.raises(StoreError):
            Folder.open(str(tmp_path / "file/below"), create=True)

    def test_an_absent_folder_is_not_made_in_passing(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            Folder.open(str(tmp_path / "jobs"))
        assert list(tmp_path.iterdir()) == []

    def test_new_means_new(self, folder: Folder) -> None:
        folder.write("a.json", b"x")
        inside(folder, "link").symlink_to("elsewhere")
        for name in ("a.json", "link"):
            with pytest.raises(FileExistsError):
                folder.create(name, b"y")
        assert folder.read("a.json", 10)[0] == b"x"
        assert inside(folder, "link").is_symlink()


class TestWriting:
    def test_a_replaced_link_is_replaced_not_followed(self, folder: Folder, tmp_path: Path) -> None:
        target = tmp_path / "precious"
        target.write_text("untouched")
        inside(folder, "a.json").symlink_to(target)
        folder.write("a.json", b"new")
        assert target.read_text() == "untouched"
        assert folder.read("a.json", 10)[0] == b"new"

    @pytest.mark.parametrize("step", ["write", "replace", "fchmod"])
    def test_whatever_fails_no_temp_file_stays_and_the_old_one_does(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        """D5."""
        folder.write("a.json", b"old")

        def fail(*args: object, **kwargs: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            with pytest.raises(OSError, match="No space"):
                folder.write("a.json", b"new")
        assert folder.names() == ["a.json"]
        assert folder.read("a.json", 10)[0] == b"old"

    def test_short_writes_are_completed(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
        folder.write("a.json", b"0123456789" * 10)
        assert folder.read("a.json", 1000)[0] == b"0123456789" * 10

    def test_only_a_full_disk_is_an_error_like_any_other(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A failed fsync means that nobody knows what is on the disk."""
        for number, kind in ((errno.EIO, SyncFailed), (errno.ENOSPC, OSError)):

            def fail(fd: int, number: int = number) -> None:
                raise OSError(number, os.strerror(number))

            monkeypatch.setattr(os, "fsync", fail)
            with pytest.raises(kind):
                folder.sync()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission denied"),
        (errno.ENOENT, "no such file"),
    ],
)
def test_a_problem_is_one_sentence(number: int, words: str) -> None:
    """E15."""
    message = explain(OSError(number, os.strerror(number)), "/reg").message
    assert message.startswith("/reg: ")
    assert words in message
