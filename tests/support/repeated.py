"""`pytest --repeat N`: runs each chosen test N times and names those that ever fail.

`./test --repeat N [TESTS]` uses it with load on every core and on the disk.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

_FIXTURE = "_repetition"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--repeat", type=int, default=0, metavar="N", help="run each test N times, name the flaky"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("repeat"):
        # Hypothesis objects to one test method on several instances, which is what repeating does.
        health = [HealthCheck.differing_executors]
        settings.register_profile("repeated", settings(), suppress_health_check=health)
        settings.load_profile("repeated")


@pytest.fixture
def _repetition() -> None:
    """Gives a test its number, as a parameter, so that N of them are collected."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if times := metafunc.config.getoption("repeat"):
        metafunc.fixturenames.append(_FIXTURE)
        metafunc.parametrize(_FIXTURE, range(times), ids=lambda number: f"repeat{number}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    times = terminalreporter.config.getoption("repeat")
    if not times:
        return
    bad = {
        report.nodeid
        for outcome in ("failed", "error")
        for report in terminalreporter.stats.get(outcome, [])
    }
    failures = Counter(_without_number(nodeid) for nodeid in bad)
    terminalreporter.section(f"each test {times} times")
    for nodeid, count in failures.most_common():
        terminalreporter.write_line(f"{nodeid}: failed {count} of {times}")
    if not failures:
        terminalreporter.write_line("none failed")


def _without_number(nodeid: str) -> str:
    name, _, parameters = nodeid.partition("[")
    kept = [one for one in parameters.rstrip("]").split("-") if not one.startswith("repeat")]
    return f"{name}[{'-'.join(kept)}]" if kept else name
