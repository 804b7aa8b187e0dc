"""A stage for supervised stand-ins, and somebody who must not be touched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.supervision import Stage, Stranger, stage, strangers


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as made:
        yield made


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Stranger]:
    with strangers(tmp_path, 1) as (made,):
        yield made
