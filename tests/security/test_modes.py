"""Promise 9, fault 61: whatever the umask, nobody else can read a byte of ours."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tests.security.deeds import DEEDS, a_day_of_work, everything_in, open_umask, settled, told
from tests.support.sessions import SessionShop


def test_what_every_verb_writes_is_for_its_owner_alone(shop: SessionShop, home: Path) -> None:
    settled(shop)
    with open_umask():
        names = a_day_of_work(shop)
        for deed in DEEDS:
            shop.ok(*told(deed, names))
        for ending in ("csv", "json", "md"):
            shop.ok("export", "-o", f"out.{ending}")
    found = {path: path.lstat().st_mode for path in everything_in(shop.folder / ".mam", home)}
    for name in ("tasks.json", "out.csv", "out.json", "out.md"):
        found[shop.folder / name] = (shop.folder / name).lstat().st_mode
    # All that a person met today: nothing is left out by not being looked at.
    kinds = {path.name for path in found}
    assert kinds > {".lock", ".outbox", ".broker", ".sessions", ".archive", "events.ndjson"}
    assert kinds > {"process.json", "output.log", "credentials.json", "address.json", "mam"}
    loose = {
        os.fspath(path.relative_to(shop.folder.parent)): f"{stat.S_IMODE(mode):o}"
        for path, mode in found.items()
        if path != home and stat.S_IMODE(mode) & 0o077 and not stat.S_ISSOCK(mode)
    }
    assert not loose
