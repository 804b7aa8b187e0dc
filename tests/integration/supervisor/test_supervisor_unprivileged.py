"""The same promises for a user without any privilege: no namespace, and still nobody is left."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.support.strangers import NOBODY, as_nobody, python_for_nobody

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become another user; other tests run as that user"
)


@pytest.fixture(scope="module")
def python() -> str:
    return python_for_nobody()


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
