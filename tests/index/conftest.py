"""Fixtures of the index's stories: a site, and a handle on it that uses the index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.registry import Registry
from tests.index.site import Site
from tests.support.clock import FakeClock


@pytest.fixture
def site(tmp_path: Path, clock: FakeClock) -> Iterator[Site]:
    made = Site(tmp_path, clock)
    yield made
    made.close()


@pytest.fixture
def registry(site: Site) -> Registry:
    return site.open()
