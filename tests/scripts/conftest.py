"""The two scripts imported as siblings, the way other scripts of the original do it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scripts.plain import SCRIPTS


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of a user, as the working directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def siblings(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    names = ("registry", "mqtt_common")
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def common(siblings: dict[str, Any]) -> Any:
    return siblings["mqtt_common"]


@pytest.fixture
def registry(siblings: dict[str, Any]) -> Any:
    return siblings["registry"]
