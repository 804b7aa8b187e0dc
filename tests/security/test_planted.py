"""Fault 60: links that somebody planted among our files lead nobody out of our folders.

Each path that a day of work leaves behind is exchanged for a link to a file or folder outside;
then the verbs are used. What is outside stays as it was, to the byte and the mode.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest

from mam_core.wiring import open_registry
from tests.security.deeds import DEEDS, a_day_of_work, everything_in, settled, told
from tests.support.handles import close_later
from tests.support.sessions import SessionShop

#: A verb that waits for another host, or for nobody.
_QUICK = [deed for deed in DEEDS if deed[0] not in ("nodes", "dispatch")]


class Outside:
    """What belongs to somebody else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "theirs"
        self.file = folder / "their file"
        self.folder.mkdir()
        (self.folder / "kept").write_text("not yours")
        self.file.write_text('{"not": "yours"}\n')
        self.file.chmod(0o644)
        self.folder.chmod(0o755)
        self.before = self.now()

    def now(self) -> dict[str, tuple[int, bytes]]:
        return {
            path.name: (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in (self.file, *everything_in(self.folder))
        }


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


def _plants(home: Path) -> Iterator[tuple[Path, str]]:
    """Each path below `home` that is no derived one, and each way to plant it."""
    for path in everything_in(home):
        inside = path.relative_to(home)
        if path == home:
            continue  # the way to our folders is the person's own
        if ".index" in inside.parts or ".broker" in inside.parts[:-1]:
            continue  # derived; and what its own program makes below `.broker`
        yield inside, "link"
        if path.is_file():
            yield inside, "second name"


def _planted(path: Path, way: str, outside: Outside) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
        path.symlink_to(outside.folder)
        return
    path.unlink(missing_ok=True)
    if way == "link":
        path.symlink_to(outside.file)
    else:
        os.link(outside.file, path)


@pytest.mark.parametrize(
    "deeds", [1, pytest.param(len(_QUICK), marks=[pytest.mark.release, pytest.mark.timeout(900)])]
)
def test_a_link_in_place_of_anything_leads_nowhere(
    shop: SessionShop, outside: Outside, monkeypatch: pytest.MonkeyPatch, deeds: int
) -> None:
    settled(shop)
    names = a_day_of_work(shop)
    shop.registry.store.close()
    original = shop.folder / ".mam"
    turn = cycle(_QUICK)
    tried = 0
    for inside, way in _plants(original):
        copy = shop.folder / "copy"
        copy.mkdir()
        monkeypatch.chdir(copy)
        shutil.copytree(original, copy / ".mam", symlinks=True, ignore=_no_pipe)
        _planted(copy / ".mam" / inside, way, outside)
        for deed in islice(turn, deeds):
            said = shop.say(*told(deed, names))
            assert said.code in (0, 1, 3), (inside, way, said)
            assert outside.now() == outside.before, f"{way} at {inside}: mam {deed[0]}"
        monkeypatch.chdir(shop.folder)
        shutil.rmtree(copy)
        tried += 1
    assert tried > 40


def _no_pipe(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_fifo()]


def test_a_worker_writes_no_attempt_through_a_link(shop: SessionShop, outside: Outside) -> None:
    """Its folders and files are made where they should be, or the job is given back."""
    settled(shop)
    jobs = [shop.add("teller", f"job {number}") for number in range(5)]
    logs = Path(shop.registry.store.audit.path)
    plants = ("attempts", "attempts/1", "attempts/1/output.log", "attempts/1/process.json", "")
    for job_id, inside in zip(jobs, plants, strict=True):
        place = logs / job_id / inside
        if inside:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            place.symlink_to(outside.file if "." in inside else outside.folder)
    with shop.mam_work("--drain") as worker:
        worker.until(lambda: shop.job(jobs[-1]).status.is_ended, "the last one is run")
    assert outside.now() == outside.before
    assert "this one tells" in shop.output(jobs[-1])


@pytest.mark.parametrize("name", [".sessions", ".outbox", ".broker", ".archive", ".index"])
def test_a_folder_that_is_a_link_is_not_filled(
    shop: SessionShop, outside: Outside, name: str
) -> None:
    settled(shop)
    done = shop.add("teller")
    place = shop.path / name
    if place.exists():
        shutil.rmtree(place)
    place.symlink_to(outside.folder)
    registry = close_later(open_registry(str(shop.path), config=shop.config))
    registry.request_cancel(done)
    registry.store.close()
    deeds: list[tuple[str, ...]] = [("publish", "--job", done, "--event", "log"), ("clean", done)]
    deeds += [("sessions",), ("list",)]
    if name in (".sessions", ".broker"):  # a worker in a session has to do with these
        deeds += [("spawn", "--agent-session", "tmux:x", "--agent", "teller")]
        deeds += [("stop", "x", "--now")]
    for deed in deeds:
        said = shop.say(*deed)
        assert said.code in (0, 1), said
    assert outside.now() == outside.before
