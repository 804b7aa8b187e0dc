"""Every verb that writes, once: what a project folder holds after a day of work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mam_core.operations.preferences import Preferences
from tests.support.brokers import processes_in
from tests.support.patience import until_gone
from tests.support.sessions import SessionShop

#: In words that `Shop.say` takes; {job} is a job that waits, {done} one that has ended.
DEEDS: tuple[tuple[str, ...], ...] = (
    ("register", "--prompt", "p", "--agent", "shell", "--agent-session", "tmux:b", "--token"),
    ("pick", "--label", "tmux:b"),
    ("publish", "--job", "{job}", "--event", "progress", "--detail", "on its way"),
    ("edit", "{job}", "--priority", "3"),
    ("pause", "--group", "night"),
    ("resume", "--group", "night"),
    ("status", "{job}"),
    ("cancel", "{job}"),
    ("retry", "{job}"),
    ("pick", "--label", "tmux:a"),
    ("heartbeat", "{job}", "--owner", "w1"),
    ("list",),
    ("logs", "{done}"),
    ("why", "{done}"),
    ("replay", "--span"),
    ("attention",),
    ("sessions",),
    ("clean", "{done}"),
    ("clean", "--undo"),
    ("dispatch", "init", "specs", "--file", "tasks.json"),
    ("dispatch", "status", "--file", "tasks.json"),
    ("nodes",),
)


def a_day_of_work(shop: SessionShop) -> dict[str, str]:
    """A job that was run, one that waits, a session that was spawned and stopped, a broker.

    Answers the names that the deeds are about.
    """
    teller = "teller"
    done = shop.add(teller, auth_token=True, expected_artifacts=[])
    with shop.mam_work("--drain") as worker:  # it keeps the registry's own broker meanwhile
        assert worker.code() == 0, worker.err
    shop.spawn("desk", teller)
    shop.ok("stop", "desk", "--now")
    until_gone(lambda: [process.pid for process in processes_in(shop.folder)])
    waiting = shop.add("shell", agent_session="tmux:a", auth_token=True)
    (shop.folder / "specs").mkdir(exist_ok=True)
    (shop.folder / "specs" / "S01-a.md").write_text("do it")
    Preferences(hint_seen=True).save()
    return {"job": waiting, "done": done}


def settled(shop: SessionShop) -> None:
    """A person's own file comes first; one that everybody may write to would not be read."""
    shop.agent("teller", "tells_surroundings")
    shop.settle()


def told(deed: tuple[str, ...], names: dict[str, str]) -> list[str]:
    return [word.format(**names) for word in deed]


@contextmanager
def open_umask() -> Iterator[None]:
    """Whoever makes a file now makes it for everybody, unless it says otherwise."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def everything_in(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        if folder.exists():
            yield folder
            yield from sorted(folder.rglob("*"))
