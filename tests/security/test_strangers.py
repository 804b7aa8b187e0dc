"""Files of another user among ours, and another user at our files: neither gets anywhere."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.deeds import a_day_of_work, everything_in, settled
from tests.support.sessions import SessionShop
from tests.support.strangers import NOBODY, as_nobody, python_for_nobody

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can give a file to another user"
)


@pytest.fixture
def waiting(shop: SessionShop) -> str:
    """A job that nobody has claimed."""
    shop.settle()
    return shop.add("shell", agent_session="tmux:a")


def _given_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


def test_a_record_of_a_stranger_is_a_row_that_says_so(shop: SessionShop, waiting: str) -> None:
    """Fault 60: in a folder that was open for a while, anybody may have left one."""
    planted = shop.path / "planted.json"
    record = json.loads((shop.path / f"{waiting}.json").read_bytes())
    planted.write_text(json.dumps(record | {"job_id": "planted", "priority": 100}))
    _given_away(planted)
    rows = {row["job_id"]: row["status"] for row in json.loads(shop.ok("list", "--json").out)}
    assert rows["planted"] == "unreadable"
    assert f"belongs to user {NOBODY}" in shop.say("get", "planted").err
    assert shop.ok("pick", "--label", "tmux:a").out.strip() == waiting


@pytest.mark.parametrize("name", [".lock", ".journal", "events.ndjson", "status.json"])
def test_a_file_that_we_write_in_is_not_taken_from_a_stranger(
    shop: SessionShop, waiting: str, name: str
) -> None:
    """Whoever owns it can read and change it; so it is refused, or made anew as ours."""
    shop.registry.store.close()
    history = Path(shop.registry.store.audit.path) / waiting
    place = (history if "." in name[1:] else shop.path) / name
    place.unlink(missing_ok=True)
    place.write_bytes(b"")
    place.chmod(0o666)
    _given_away(place)
    said = shop.say("edit", waiting, "--priority", "7")
    state = place.stat()
    assert state.st_uid == 0 or place.read_bytes() == b"", f"{name} of a stranger was written to"
    assert state.st_uid == 0 or name in said.err, said


def test_an_event_of_a_stranger_is_set_aside(shop: SessionShop, waiting: str) -> None:
    """A post in the outbox would be told under our name."""
    shop.ok("publish", "--job", waiting, "--event", "progress", "--detail", "ours")
    (ours,) = (shop.path / ".outbox").glob("*.json")
    planted = ours.with_name(ours.name.replace("1-", "2-", 1))
    planted.write_bytes(ours.read_bytes().replace(b"ours", b"evil"))
    _given_away(planted)
    posts = shop.registry.store.outbox.posts(100)
    assert [post.seq for post in posts] == [1]


@pytest.fixture(scope="module")
def python() -> str:
    return python_for_nobody()


#: Lists, reads, and writes: what works is told.
_TRIES = """
import os, sys
for path in sys.argv[1:]:
    for way in (os.listdir, lambda p: open(p, "rb").read(1), lambda p: open(p, "ab").close()):
        try:
            way(path)
        except OSError:
            continue
        print(path)
"""


@pytest.fixture
def reachable() -> Iterator[Path]:
    """Where everybody may go: only the modes of what lies there protect it."""
    with tempfile.TemporaryDirectory(prefix="mam-open-", dir="/tmp") as place:
        os.chmod(place, 0o755)
        yield Path(place)


def test_another_user_can_neither_read_nor_write(
    python: str, shop: SessionShop, reachable: Path
) -> None:
    settled(shop)
    a_day_of_work(shop)
    shutil.copytree(shop.folder / ".mam", reachable / ".mam", ignore=_no_pipe)
    paths = [os.fspath(path) for path in everything_in(reachable / ".mam")]
    assert len(paths) > 20
    told = as_nobody(python, "-I", "-S", "-c", _TRIES, *paths)
    assert (told.returncode, told.stdout) == (0, ""), told.stderr
    (reachable / ".mam").chmod(0o755)  # and the instrument sees what is open
    assert as_nobody(python, "-I", "-S", "-c", _TRIES, *paths).stdout.split() == [
        os.fspath(reachable / ".mam")
    ]


def _no_pipe(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_fifo()]
