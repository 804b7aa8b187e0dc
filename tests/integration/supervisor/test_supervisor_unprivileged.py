"""The same promises for a user without any privilege: no namespace, and still nobody is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
NOBODY = 65534

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become another user; other tests run as that user"
)


def as_nobody(python: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *words],
        cwd="/",
        env={"PATH": os.defpath, "PYTHONPATH": f"{ROOT / 'core'}:{ROOT}", "TMPDIR": "/tmp"},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter that everybody may run: root's own is often in a closed folder."""
    for candidate in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        program = "import sys; assert sys.version_info >= (3, 11); import mam_core.work.supervised"
        try:
            if as_nobody(candidate, "-c", program).returncode == 0:
                return candidate
        except OSError:
            continue
    pytest.skip("no Python 3.11 here that a user without privileges may run")


def test_nobody_is_left_for_nobody(python: str) -> None:
    """Faults 39, 40: cancel, and kill -9 of the supervisor, also of an agent that scrubs."""
    told = as_nobody(python, "-m", "tests.support.unprivileged_story")
    assert told.returncode == 0, told.stderr
    story: dict[str, Any] = json.loads(told.stdout)
    assert story.pop("uid") == NOBODY
    assert [chapter["survivors"] for chapter in story.values()] == [0] * len(story)
    assert story["stopped auto"]["isolation"] == "subreaper"
    assert story["stopped off"]["isolation"] == "subreaper"
    assert story["stopped user"]["isolation"] in ("user_namespace", "subreaper")
    killed = {name: chapter for name, chapter in story.items() if "gone" in chapter}
    assert all(chapter["gone"] is True for chapter in killed.values())
