"""An embedded broker of each kind, in a folder of its own that is left without a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.events.broker import EmbeddedBroker
from tests.support.brokers import embedded, nothing_left, server


@pytest.fixture(params=["nats", "mosquitto"])
def kind(request: pytest.FixtureRequest) -> str:
    server(request.param)
    return str(request.param)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Path]:
    with nothing_left(tmp_path):
        yield tmp_path / "jobs"


@pytest.fixture
def broker(registry: Path, kind: str) -> EmbeddedBroker:
    return embedded(registry, kind)
