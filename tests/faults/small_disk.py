"""A disk small enough to fill: a private tmpfs, mounted for one test and gone after it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CannotMount(Exception):
    """This machine lets us mount nothing."""


@contextmanager
def small_disk(options: str) -> Iterator[Path]:
    """A tmpfs with these mount options, e.g. ``size=256k`` or ``nr_inodes=40``."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        raise CannotMount("only root can mount a small disk to fill it")
    point = Path(tempfile.mkdtemp(prefix="mam-disk-"))
    try:
        _mount("-t", "tmpfs", "-o", f"mode=0700,{options}", "tmpfs", str(point))
        try:
            yield point
        finally:
            # Lazily, so that a handle which a failed test left open does not keep the mount.
            subprocess.run(["umount", "-l", str(point)], check=True)
    finally:
        point.rmdir()


def make_read_only(point: Path) -> None:
    _mount("-o", "remount,ro", str(point))


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotMount(f"mount is refused here: {done.stderr.strip()}")
