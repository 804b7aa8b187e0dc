"""A workshop for those who run jobs: a registry, a worker that can be started, stand-in agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.working import Workshop, workshop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    """Whatever a test did, nothing of it lives afterwards."""
    with workshop(tmp_path) as made:
        yield made
        made.until_nobody_lives()
