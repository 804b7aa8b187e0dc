"""What every kind of test shares: a private folder as home, a clock that stands still."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from mam_core.config import CONFIG_VARIABLE, VARIABLES
from mam_core.pace import POLL_VARIABLE
from tests.support import handles, release_table
from tests.support.clock import FakeClock

pytest_plugins = ["tests.support.durations", "tests.support.repeated"]

# Machines of all speeds run these; a slow example is no finding, and a failure must be repeatable.
settings.register_profile("mam", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("mam")

# Children of a test, `mam` itself among them, say on stderr what they never close.
os.environ.setdefault("PYTHONWARNINGS", "error::ResourceWarning")

# What is started in the background by a script ignores ^C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A run that leaves nothing out, or only what is short, ends with what it has found out."""
    if terminalreporter.config.getoption("markexpr") not in ("", "release"):
        return
    passed = terminalreporter.stats.get("passed", [])
    told = [one for report in passed for one in report.user_properties]
    failed = len(terminalreporter.stats.get("failed", []))
    table = release_table.lines(release_table.figures(told), failed)
    if table:
        terminalreporter.section("release")
        terminalreporter.write_line("\n".join(table))


handles.watch_connections()


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """A test fails that leaves a descriptor, a thread or a child process behind."""
    if not handles.CAN_LOOK:
        yield
        handles.close_now()
        return
    before = handles.held()
    yield
    handles.close_now()
    if left := handles.left_since(before):
        pytest.fail("left behind: " + "; ".join(left))


_OURS = (*VARIABLES, CONFIG_VARIABLE, "MAM_JOB_ID", "MAM_LIVE_AGENT")


#: Numbers of folders. pytest's own way to a new name lists the folders of all tests before it,
#: which costs the later ones of a long run more than most of them need themselves.
_numbers = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private folder, named after the test; short, because sockets are made in it."""
    name = re.sub(r"\W", "_", request.node.name)[:26]
    folder = tmp_path_factory.getbasetemp() / f"{name}-{next(_numbers)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The private homes of tests; what session fixtures start keeps its state here as well."""
    folder = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "run"))
        yield folder


@pytest.fixture(autouse=True)
def _private_surroundings(_homes: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test reads the settings of whoever runs it, nor leaves a registry where it was started."""
    for name in _OURS:
        monkeypatch.delenv(name, raising=False)
    home = _homes / str(next(_numbers))
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    yield
    # `--store` is told to whoever is started. What a test leaves so would reach the fixtures of the
    # next module, which are set up before this one.
    for name in _OURS:
        os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for the next look of a loop, here or in a process that a test starts."""
    monkeypatch.setenv(POLL_VARIABLE, "0.02")


@pytest.fixture
def usual_pace(_quick_looks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests about the pauses themselves: those of the product."""
    monkeypatch.delenv(POLL_VARIABLE)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One real PostgreSQL for all processes of this run; skips where there is none to be had."""
    from tests.support.postgres import NoPostgres, shared_server

    base = tmp_path_factory.getbasetemp()
    together = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with ExitStack() as stack:
        try:
            with handles.opened_for_the_run():
                uri = stack.enter_context(shared_server(together / "postgres"))
        except NoPostgres as problem:
            pytest.skip(str(problem))
        yield uri


@pytest.fixture
def postgres_schema(postgres_server: str) -> Iterator[str]:
    """The uri of an empty schema, which is gone after the test."""
    from tests.support.postgres import drop_schema, new_schema

    uri = new_schema(postgres_server)
    yield uri
    drop_schema(uri)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
