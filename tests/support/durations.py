"""Keeps how long each test file takes, so that `./test --fast` can pick a minute of tests."""

from __future__ import annotations

from collections import defaultdict

import pytest

_KEY = "mam/durations"


class Durations:
    """Adds up the reports of one run; files that did not run keep what an earlier run found."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        cache: pytest.Cache | None = getattr(self._config, "cache", None)
        whole = not self._config.getoption("keyword") and not any(
            "::" in argument for argument in self._config.args
        )
        if cache is None or not whole:
            return
        known = cache.get(_KEY, {})
        ran = {path: round(seconds, 2) for path, seconds in self._seconds.items()}
        cache.set(_KEY, known | ran)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # one process hears of every test, and writes
        config.pluginmanager.register(Durations(config))
