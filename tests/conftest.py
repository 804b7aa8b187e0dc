"""What every kind of test shares: a private folder as home, a clock that stands still."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.support.clock import FakeClock

# Machines of all speeds run these; a slow example is no finding, and a failure must be repeatable.
settings.register_profile("mam", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("mam")

_OURS = ("MAM_CONFIG", "MAM_STORE", "MAM_REGISTRY_DIR", "DELEGATE_JOB_LOGS_DIR")


@pytest.fixture(autouse=True)
def _private_surroundings(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test reads the settings of whoever runs it, nor leaves a registry where it was started."""
    for name in _OURS:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(home)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
