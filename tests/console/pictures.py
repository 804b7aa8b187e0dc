"""Pictures of the real console on the demonstration: ``python -m tests.console.pictures [NAME …]``.

They go to ``screenshots/`` as SVG, and as PNG where chromium is at hand, which draws them
truly. Every agent in them is simulated, and says so. What needs hours or dependencies is
drawn from registries of the tests, which had them in no time.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from textual.pilot import Pilot

from mam_core.config import load
from mam_core.errors import MamError
from mam_core.operations.demo import demo
from mam_core.operations.listing import listing, query
from mam_core.records import Status
from mam_core.stores.base import Query
from mam_tui.app import Console
from mam_tui.arrivals import Loaded
from mam_tui.bridge import Bridge
from mam_tui.desk import Desk
from mam_tui.nodes.watch import NodeWatch
from tests.console.detail_story import desk_on, registry_in
from tests.console.picture_story import Scene, StillBridge
from tests.console.time_story import busy_hours
from tests.support.clock import FakeClock

FOLDER = Path(__file__).parents[2] / "screenshots"
#: Until something runs, something waits and something has failed.
_WARM_UP_SEC = 25.0
_BROWSER = (
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def acted(desk: Desk) -> None:
    """What an operator does on an afternoon, for the log of acts."""
    with desk.open_registry() as registry:
        jobs = registry.store.find(Query())[0]
        failed = [job.job_id for job in jobs if job.status is Status.ERROR][:2]
        waiting = [job.job_id for job in jobs if job.status is Status.PENDING][:2]
        for job_id in failed:
            with suppress(MamError):  # it may have moved on by itself
                registry.retry(job_id)
        for job_id in waiting:
            with suppress(MamError):
                registry.edit(job_id, {"priority": 5})
                registry.request_cancel(job_id, "it is no longer needed")


class Picture(NamedTuple):
    """One view, at one size."""

    name: str
    size: tuple[int, int]
    theme: str
    keys: tuple[str, ...] = ()
    stage: str = "demo"
    first: Callable[[Desk], None] = lambda desk: None  #: what happens before it is drawn


PICTURES = (
    Picture("board", (160, 40), "textual-dark", ("g",)),
    Picture("board-light", (120, 34), "textual-light", ("g",)),
    Picture("board-narrow", (60, 20), "textual-dark", ("g",)),
    Picture("job", (120, 34), "textual-dark", ("g", "enter")),
    Picture("sessions", (160, 40), "textual-dark", ("2",)),
    Picture("attention", (140, 34), "textual-dark", ("4",)),
    Picture("fleet", (160, 44), "textual-dark", ("3",)),
    Picture("gantt", (160, 40), "textual-dark", ("5", "g"), "hours"),
    Picture("charts", (160, 40), "textual-dark", ("6",), "hours"),
    Picture("history", (160, 40), "textual-dark", ("7",)),
    Picture("history-acts", (120, 34), "textual-light", ("7", "o"), first=acted),
    Picture("compare", (140, 34), "textual-dark", ("7", "G", "equals_sign"), "plan"),
    Picture("graph", (140, 30), "textual-dark", ("8", "j", "j"), "plan"),
    Picture("nodes", (140, 20), "textual-dark", ("9", "j"), "hosts"),
    Picture("groups", (140, 24), "textual-dark", ("0", "j"), "slots"),
    Picture("past", (140, 34), "textual-dark", ("t", "H")),
    Picture("keys", (100, 40), "textual-dark", ("question_mark",)),
    Picture("new-job", (120, 40), "textual-dark", ("n",)),
    Picture("answer", (120, 34), "textual-dark", ("g", "A")),
)


async def drawn(desk: Desk, picture: Picture, told: Sequence[Any] = ()) -> str:
    """The view as SVG, after everything that it asks for has come; `told`: and nothing else."""

    def bridge(ring: Callable[[], None]) -> Bridge:
        if not told:
            return Bridge(
                desk.registry_path, desk.config, ring, with_duties=False, panes=desk.panes
            )
        made = StillBridge(desk.registry_path, desk.config, ring, with_duties=False)
        made.told = told
        return made

    app = Console(desk, bridge=bridge)
    async with app.run_test(size=picture.size) as pilot:
        app.theme = picture.theme
        await _settled(pilot, lambda: not app.standing().loading)
        for key in picture.keys:
            await pilot.press(key)
            await pilot.pause(1.0)
        await pilot.pause(1.5)
        return plain_letters(app.export_screenshot(title="mam"))


def plain_letters(svg: str) -> str:
    """Fira Code makes one sign of ``7x4``, and two letters of a job's id are not one."""
    style = 'text { font-variant-ligatures: none; font-feature-settings: "calt" 0; }'
    return svg.replace("<style>", f"<style>\n    {style}\n", 1)


async def _settled(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        await pilot.pause(0.02)


def as_png(svg: Path, scale: float = 1.0) -> None:
    """By a browser: other programs lose underlines, or move the columns."""
    if shutil.which(_BROWSER[0]) is None:
        return
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg.read_text(encoding="utf-8"))
    assert found is not None
    wide, high = (int(float(side)) + 20 for side in found.groups())
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                *_BROWSER,
                f"--user-data-dir={profile}",
                f"--window-size={wide},{high}",
                f"--screenshot={svg.with_suffix('.png')}",
                f"--force-device-scale-factor={scale:g}",
                svg.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


async def draw_all(
    draw: Callable[[Picture], Awaitable[str]], pictures: Sequence[Picture] = PICTURES
) -> None:
    for picture in pictures:
        svg = FOLDER / f"{picture.name}.svg"
        svg.write_text(await draw(picture), encoding="utf-8")
        as_png(svg)
        print(svg.name)


def hours(folder: Path) -> tuple[Desk, Sequence[Any]]:
    """Two hours of eight sessions."""
    clock = FakeClock()
    registry = registry_in(folder, clock)
    busy_hours(registry, clock)
    return desk_on(folder, clock), (Loaded(listing(registry, query())),)


def plan(folder: Path) -> tuple[Desk, Sequence[Any]]:
    """A release whose jobs come after each other, and a job that was tried twice."""
    scene = Scene(folder, FakeClock())
    with scene.registry as registry:
        scene.link("Write the documentation")  # in letters that every browser has
        told = (Loaded(listing(registry, query())), scene.told[1])
    return scene.desk(load()), told


def hosts(folder: Path) -> tuple[Desk, Sequence[Any]]:
    """Four hosts, made up: a demonstration has one."""
    scene = Scene(folder, FakeClock())
    setattr(NodeWatch, "_look", lambda self: self._deliver(scene.nodes()))  # noqa: B010
    return scene.desk(load()), scene.told


def slots(folder: Path) -> tuple[Desk, Sequence[Any]]:
    """Groups whose slots a person and the autoscaler set."""
    scene = Scene(folder, FakeClock())
    scene.scale()
    return scene.desk(load()), scene.told


def main(wanted: Sequence[str] = ()) -> int:
    """All pictures, or those that are named."""
    with demo(60, lambda words: None) as staged, tempfile.TemporaryDirectory() as made:
        made_up = {}
        for stage, build in (("hours", hours), ("plan", plan), ("hosts", hosts), ("slots", slots)):
            folder = Path(made, stage)
            folder.mkdir()
            made_up[stage] = build(folder)

        async def draw(picture: Picture) -> str:
            if picture.stage in made_up:
                desk, told = made_up[picture.stage]
                return await drawn(desk, picture, told)
            desk = Desk(staged.registry_path, staged.config)
            picture.first(desk)
            return await drawn(desk, picture)

        async def run() -> None:
            await asyncio.sleep(_WARM_UP_SEC)
            chosen = [one for one in PICTURES if not wanted or one.name in wanted]
            await draw_all(draw, chosen)

        asyncio.run(run())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
