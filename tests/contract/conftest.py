"""One suite, every store: the fixtures that run each story over each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mam_core.registry import Registry
from tests.support.clock import FakeClock
from tests.support.stores import STORES, postgres

MakeRegistry = Callable[..., Registry]


@pytest.fixture(params=[*STORES, "postgres"])
def make_registry(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> Iterator[MakeRegistry]:
    """Opens the registry under test; called again, one more handle on the same one."""
    if request.param == "postgres":
        open_store = postgres(tmp_path, request.getfixturevalue("postgres_schema"))
    else:
        open_store = STORES[request.param](tmp_path)
    opened: list[Registry] = []

    def make(**given: Any) -> Registry:
        options: dict[str, Any] = {"clock": clock, "actor": "ann", "node": "host", **given}
        if "slots" in given:
            options["slots"] = lambda: given["slots"]
        registry = Registry(open_store(), **options)
        opened.append(registry)
        return registry

    yield make
    for registry in opened:
        registry.store.close()


@pytest.fixture
def registry(make_registry: MakeRegistry) -> Registry:
    return make_registry()
