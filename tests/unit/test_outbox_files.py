"""The outbox as a folder: posts in order, strangers set aside, one relay, a bell."""

from __future__ import annotations

import gc
import math
import os
import select
import socket
import stat
import threading
from pathlib import Path

import pytest

from mam_core.errors import RegistryGone, RegistryMissing, UnreadableRecord
from mam_core.events.post import Post
from mam_core.record_parts import Broker
from mam_core.registry import Registry
from mam_core.stores import base
from mam_core.stores.bell_file import BELL
from mam_core.stores.commit import OUTBOX
from mam_core.stores.outbox_files import (
    BAD,
    FilesOutbox,
    decode_post,
    encode_post,
    post_name,
)
from tests.support.jobs import add
from tests.support.rows import each_row

BROKER = Broker("b.lan", 1883, False, "u", "secret", {"keepalive": 30})


def a_post(seq: int = 1, job_id: str = "abc12345", payload: bytes = b"{}") -> Post:
    return Post(job_id, 1, seq, f"jobs/{job_id}/events", BROKER, payload)


@pytest.fixture
def home(place: Path) -> Path:
    folder = place / ".outbox"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    return folder


@pytest.fixture
def outbox(home: Path, place: Path) -> FilesOutbox:
    return FilesOutbox(str(place))


def put(home: Path, post: Post) -> Path:
    path = home / post_name(post)
    path.write_bytes(encode_post(post))
    path.chmod(0o600)
    return path


class TestAPost:
    @each_row("payload", [b"", b"{}", b"\n\n", bytes(range(256)), b"x" * 2**20])
    def test_comes_back_as_it_was(self, payload: bytes) -> None:
        post = a_post(7, payload=payload)._replace(topic="별/events\n")
        assert decode_post(encode_post(post), post_name(post)) == post

    def test_names_sort_like_numbers(self) -> None:
        names = [post_name(a_post(seq)) for seq in (1, 9, 10, 99, 100, 10**11)]
        assert names == sorted(names)

    def test_is_private(self, registry: Registry, place: Path) -> None:
        """Decision 10: it holds the broker's password."""
        registry.publish(add(registry), "progress")
        (path,) = (place / ".outbox").glob("*.json")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def test_of_another_name_is_not_believed(self) -> None:
        with pytest.raises(UnreadableRecord, match="another event"):
            decode_post(encode_post(a_post(1)), post_name(a_post(2)))


class TestStrangers:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\n",
            b"{}",
            b"{}\n{}",
            b"[]\n{}",
            b'{"job_id":"abc12345","attempt":1,"seq":1,"topic":1,"broker":{}}\n',
            b'{"job_id":"abc12345","attempt":1,"seq":true,"topic":"t","broker":{}}\n',
            b'{"job_id":"abc12345","attempt":1,"seq":1,"topic":"t","broker":[]}\n',
            b'{"job_id":"../../etc","attempt":1,"seq":1,"topic":"t","broker":{}}\n',
            b"\xff\xfe\n{}",
            b"[" * 100_000 + b"\n",
            encode_post(a_post(5)),
            b"x" * (2 * 2**20),
        ],
        ids=range(13),
    )
    def test_what_is_no_post_is_set_aside_and_the_others_go_on(
        self, home: Path, outbox: FilesOutbox, content: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        bad = home / post_name(a_post(1))
        bad.write_bytes(content)
        put(home, a_post(2))
        for _ in range(3):
            assert [post.seq for post in outbox.posts(10)] == [2]
        assert not bad.exists()
        assert (home / (bad.name + BAD)).read_bytes() == content
        assert len(caplog.records) == 1, "said once"

    def test_links_pipes_and_folders_are_set_aside(
        self, home: Path, outbox: FilesOutbox, tmp_path: Path
    ) -> None:
        secret = tmp_path / "secret"
        secret.write_bytes(encode_post(a_post(1)))
        (home / post_name(a_post(1))).symlink_to(secret)
        os.mkfifo(home / post_name(a_post(2)))
        (home / post_name(a_post(3))).mkdir()
        assert outbox.posts(10) == []
        assert sorted(path.suffix for path in home.iterdir()) == [BAD, BAD, BAD]
        assert secret.exists()

    def test_other_names_are_nobodys_business(self, home: Path, outbox: FilesOutbox) -> None:
        names = ("notes.txt", ".x.tmp", "1-abc12345.json", "000000000001-abc12345.json.bad", "-")
        for name in names:
            (home / name).write_text("{}")
        put(home, a_post(1))
        assert [post.seq for post in outbox.posts(10)] == [1]
        assert {path.name for path in home.iterdir()} >= set(names)

    def test_a_job_id_in_a_name_is_no_path(self, home: Path, outbox: FilesOutbox) -> None:
        (home / "000000000001-...json").write_text("{}\n")
        (home / "٠٠٠٠٠٠٠٠٠٠٠١-abc12345.json").write_bytes(encode_post(a_post(1)))
        assert outbox.posts(10) == []

    def test_an_outbox_open_to_others_is_closed(self, home: Path, outbox: FilesOutbox) -> None:
        home.chmod(0o755)
        outbox.posts(1)
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


class TestWhatWaits:
    def test_whoever_lets_go_of_it_has_its_folder_closed_at_once(self, home: Path) -> None:
        """A console asks for one again and again; it may not wait for garbage to be collected."""
        gc.disable()
        try:
            before = len(os.listdir("/dev/fd"))
            for _ in range(20):
                assert FilesOutbox(str(home.parent)).posts(1) == []
            assert len(os.listdir("/dev/fd")) == before
        finally:
            gc.enable()

    def test_a_registry_without_outbox_is_empty(self, tmp_path: Path) -> None:
        outbox = FilesOutbox(str(tmp_path / "nowhere"))
        assert outbox.posts(10) == []
        assert not outbox.holds("abc12345", 1)
        assert not outbox.ring()
        outbox.done([a_post()])
        assert not (tmp_path / "nowhere").exists()

    def test_done_is_done_and_may_be_said_twice(self, home: Path, outbox: FilesOutbox) -> None:
        put(home, a_post(1))
        assert outbox.holds("abc12345", 1)
        outbox.done([a_post(1), a_post(1)])
        assert not outbox.holds("abc12345", 1)

    def test_what_was_set_aside_was_not_taken(self, home: Path, outbox: FilesOutbox) -> None:
        put(home, a_post(1))
        outbox.set_aside(a_post(1), "nobody likes it")
        assert outbox.posts(10) == []
        assert outbox.holds("abc12345", 1)

    def test_only_so_much_comes_into_memory(self, home: Path, outbox: FilesOutbox) -> None:
        for seq in range(1, 31):
            put(home, a_post(seq, payload=b"x" * 2**20))
        assert len(outbox.posts(1000)) == 17


class TestTheBell:
    def test_rings_only_where_somebody_listens(self, place: Path, outbox: FilesOutbox) -> None:
        relay = FilesOutbox(str(place))
        assert not outbox.ring()
        with relay.relaying() as mine:
            assert mine
            assert not relay.wait(0)
            assert outbox.ring()
            assert relay.wait(30)
            assert not relay.wait(0), "one ring is heard once"
        assert not outbox.ring()

    def test_wakes_a_relay_that_sleeps(self, place: Path, outbox: FilesOutbox) -> None:
        relay = FilesOutbox(str(place))
        heard: list[bool] = []
        with relay.relaying():
            thread = threading.Thread(target=lambda: heard.append(relay.wait(60)))
            thread.start()
            outbox.ring()
            thread.join(60)
        assert heard == [True]

    def test_of_a_relay_that_does_not_listen_cannot_block_a_publisher(
        self, place: Path, outbox: FilesOutbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(base, "QUIET_SEC", math.inf)  # however long the rings take
        relay = FilesOutbox(str(place))
        with relay.relaying():
            for _ in range(70_000):  # more than a pipe holds
                assert outbox.ring()

    def test_that_somebody_replaced_is_hung_anew(
        self, home: Path, place: Path, outbox: FilesOutbox
    ) -> None:
        (home / BELL).write_text("a plain file")
        assert not outbox.ring()
        assert (home / BELL).read_text() == "a plain file"
        with FilesOutbox(str(place)).relaying() as mine:
            assert mine
            assert outbox.ring()
        assert stat.S_IMODE((home / BELL).stat().st_mode) == 0o600

    def test_other_files_end_the_wait_too(self, home: Path, place: Path) -> None:
        ours, theirs = os.pipe()
        try:
            relay = FilesOutbox(str(place))
            with relay.relaying():
                os.write(theirs, b"x")
                assert not relay.wait(60, {ours: select.POLLIN})
        finally:
            os.close(ours)
            os.close(theirs)


class TestOneRelayAtATime:
    def test_there_is_none_where_there_is_no_registry(self, tmp_path: Path) -> None:
        with pytest.raises(RegistryMissing), FilesOutbox(str(tmp_path / "nowhere")).relaying():
            pass
        assert not (tmp_path / "nowhere").exists()

    def test_the_second_is_told_so_at_once(self, place: Path, home: Path) -> None:
        first, second = FilesOutbox(str(place)), FilesOutbox(str(place))
        with first.relaying() as mine, second.relaying() as theirs:
            assert (mine, theirs) == (True, False)
        with second.relaying() as now:
            assert now

    def test_a_relay_whose_folder_was_replaced_touches_the_new_one_not(
        self, place: Path, home: Path, outbox: FilesOutbox
    ) -> None:
        with outbox.relaying():
            home.rename(place / "elsewhere")
            home.mkdir(mode=0o700)
            path = put(home, a_post(1))
            with pytest.raises(RegistryGone):
                outbox.posts(10)
        assert path.exists()
        assert len(outbox.posts(10)) == 1, "without the lock it is an outbox like any other"


@pytest.mark.parametrize("plant", ["link", "socket", "folder", "file"])
def test_what_is_planted_as_the_bell_is_replaced(tmp_path: Path, plant: str) -> None:
    home = tmp_path / "jobs"
    bell = home / OUTBOX / BELL
    bell.parent.mkdir(parents=True)
    if plant == "link":
        bell.symlink_to("/dev/zero")
    elif plant == "socket":
        with socket.socket(socket.AF_UNIX) as planted:
            planted.bind(str(bell))
    elif plant == "folder":
        bell.mkdir()
    else:
        bell.write_text("no pipe")
    with FilesOutbox(str(home)).relaying() as mine:
        assert mine
        assert bell.is_fifo()
