"""The drop-in scripts as a stranger has them: by path, with a Python that has nothing installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "core" / "scripts"
REGISTRY = SCRIPTS / "registry.py"

#: ``-S`` leaves out site-packages, so neither our .venv's mam_core nor its paho is found.
BARE = [sys.executable, "-S", "-E"]


def surroundings(**more: str) -> dict[str, str]:
    """Nothing of ours: what a user's cron job would have."""
    return {"PATH": os.defpath, "HOME": os.environ["HOME"], **more}


def run(*command: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BARE, *map(str, command)],
        cwd=cwd,
        env=surroundings(**environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def registry(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """``registry.py …`` by its path, from a folder that has nothing to do with it."""
    return run(REGISTRY, *arguments, cwd=cwd, **environ)
