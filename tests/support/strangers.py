"""A user who owns nothing here, and a Python that this user may run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

NOBODY = 65534
ROOT = Path(__file__).parents[2]
_PROBE = "import sys; assert sys.version_info >= (3, 11); import mam_core.cli.main"


def as_nobody(*command: str, cwd: str = "/", **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs as that user, who finds `mam_core` and the tests of this clone."""
    surroundings: Mapping[str, str] = {
        "PATH": os.defpath,
        "PYTHONPATH": f"{ROOT / 'core'}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": "/tmp",
        **environ,
    }
    return subprocess.run(
        command,
        cwd=cwd,
        env=surroundings,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=110,
    )


def python_for_nobody() -> str:
    """Skips where there is none: root's own Python, or the clone, is often in a closed folder."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    for candidate in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        try:
            if as_nobody(candidate, "-c", _PROBE).returncode == 0:
                return candidate
        except OSError:
            continue
    pytest.skip("no Python 3.11 and clone here that a user without privileges may read")
