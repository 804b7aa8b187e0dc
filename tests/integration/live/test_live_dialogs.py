"""What an agent asks before its first prompt is known by its program, and answered by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live import LiveShop, live_shop
from tests.support.patience import eventually
from tests.support.recordings import SAMPLES


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[LiveShop]:
    with live_shop(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("program", "screen", "dialog"),
    [
        ("claude", "dialogs.tmux.01-trust", "trust"),
        ("codex", "first-start-model-dialog", "model switch"),
        ("gemini", "trust-after", "trust"),
        ("aider", "first-start-release-notes", "release notes"),
    ],
)
def test_a_dialog_of_a_renamed_profile_gets_not_a_key(
    shop: LiveShop, program: str, screen: str, dialog: str
) -> None:
    """The profile has its owner's name; the dialog is that of the program."""
    keys = shop.shows("my-own", program, SAMPLES / program / f"{screen}.screen.txt")
    job_id = shop.add("my-own")
    shop.open(agent="my-own", cols=120, rows=50)
    shop.until_state(job_id, "waiting", f"{dialog}: ")
    eventually(lambda: "permission_required" in shop.names(job_id), "a person is told")
    assert shop.stages(job_id) == []
    assert keys.read_bytes() == b""
