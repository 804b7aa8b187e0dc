"""What fault tests share: a place that is removed in any case, a nursery, a line for the table."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.faults import figures
from tests.faults.nursery import Nursery
from tests.faults.system_calls import why_no_strace
from tests.support.handles import opened_for_the_run

Figures = Callable[[str, Mapping[str, int]], None]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is gone after the test, also after one that failed: a run makes thousands."""
    path = Path(tempfile.mkdtemp(prefix="mam-faults-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with opened_for_the_run():
        made = Nursery()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="session")
def strace(nursery: Nursery) -> None:
    """Skips where system calls cannot be watched, and says why."""
    if reason := why_no_strace(nursery):
        pytest.skip(reason)


@pytest.fixture
def show_figures(
    capfd: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> Figures:
    """Prints a line of the table, past the capture, on stderr: the one that parallel runs share."""

    def show(name: str, counts: Mapping[str, int]) -> None:
        record_property(f"faults: {name}", dict(counts))
        with capfd.disabled():
            sys.stderr.write("\n" + figures.line(name, counts) + "\n")

    return show
