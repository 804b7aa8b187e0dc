"""Many processes and threads on one registry: nothing twice, nothing lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from mam_core import api
from mam_core.audit import AuditLog
from mam_core.locations import logs_path
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.stores.base import Query
from mam_core.wiring import open_registry
from tests.support.children import run_all
from tests.support.handles import close_later
from tests.support.jobs import add, request

START = """
import sys
from mam_core import api
from mam_core.wiring import open_registry
place, argument = sys.argv[1:3]
registry = open_registry(place)
print("ready", flush=True)
sys.stdin.readline()
"""
NUMBERS = (
    START
    + """
for _ in range(200):
    print(registry.next_seq(argument))
"""
)
CLAIM_ALL = (
    START
    + """
while (job := registry.claim(argument)) is not None:
    print(job.job_id, job.attempt)
"""
)
CLAIM_ALL_BY_FUNCTION = (
    START
    + """
while (job := api.pick_pending(argument, place)) is not None:
    print(job, 1)
"""
)
REGISTER = (
    START
    + """
for i in range(40):
    job = {"prompt": f"{argument} {i}", "agent": "a", "agent_session": "s"}
    print(registry.register([job])[0].job_id)
"""
)
CLAIM_AND_FINISH = (
    START
    + """
from mam_core.records import Reason, Status
while (job := registry.claim("s")) is not None:
    number = job.attempt
    print(job.job_id, number)
    if number < 3:
        registry.requeue(job.job_id, Reason.LOST, attempt=number)
    else:
        registry.finish(job.job_id, Status.COMPLETED, attempt=number)
"""
)
TELL = (
    START
    + """
from mam_core.audit import AuditEvent
import os
for number in range(15):
    line = registry.note(AuditEvent.RECEIVED, number=number)
    registry.store.audit.append(argument, line.to_dict(argument))
    registry.edit(argument, {"model": f"{os.getpid()} {number}"})
registry.store.close()
"""
)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


@pytest.fixture
def registry(place: str) -> Registry:
    return close_later(open_registry(place))


def lines(printed: list[str]) -> list[str]:
    return [line for output in printed for line in output.splitlines()]


def check_histories(place: str, ids: list[str]) -> None:
    """Every job's lines are numbered 1..n, with one claim for each attempt."""
    log = close_later(AuditLog(logs_path(place)))
    for job_id in ids:
        told = list(log.events(job_id))
        assert [line["n"] for line in told] == list(range(1, len(told) + 1))
        attempts = [line["attempt"] for line in told if line.get("to") == "running"]
        assert attempts == list(range(1, len(attempts) + 1))


def test_eight_processes_take_1600_numbers(registry: Registry, place: str) -> None:
    """B2, G3: exactly 1..1600."""
    job_id = add(registry)
    numbers = lines(run_all(NUMBERS, [[place, job_id]] * 8))
    assert sorted(map(int, numbers)) == list(range(1, 1601))
    assert registry.get(job_id).last_seq == 1600


@pytest.mark.parametrize("program", [CLAIM_ALL, CLAIM_ALL_BY_FUNCTION], ids=["engine", "function"])
def test_sixteen_processes_share_300_jobs(registry: Registry, place: str, program: str) -> None:
    """C3: 300 distinct ids, none left."""
    ids = [answer.job_id for answer in registry.register([request(str(i)) for i in range(300)])]
    claimed = lines(run_all(program, [[place, "alpha"]] * 16))
    assert sorted(line.split()[0] for line in claimed) == sorted(ids)
    assert {line.split()[1] for line in claimed} == {"1"}
    assert {row.status for row in registry.store.find(Query())[0]} == {Status.RUNNING}
    check_histories(place, ids)


def test_labels_partition_between_processes(registry: Registry, place: str) -> None:
    """C4."""
    wanted: dict[str, set[str]] = {label: set() for label in "abcd"}
    for i in range(80):
        label = "abcd"[i % 4]
        wanted[label].add(add(registry, str(i), agent_session=label))
    printed = run_all(CLAIM_ALL, [[place, label] for label in "abcd"])
    for label, output in zip("abcd", printed, strict=True):
        assert {line.split()[0] for line in output.splitlines()} == wanted[label]


def test_parallel_registrations_never_share_an_id_or_a_place(
    registry: Registry, place: str
) -> None:
    """A10, C6."""
    ids = lines(run_all(REGISTER, [[place, str(who)] for who in range(8)]))
    assert len(set(ids)) == 320
    jobs = [registry.get(job_id) for job_id in ids]
    assert len({job.order for job in jobs}) == 320
    check_histories(place, ids)


def test_registering_and_claiming_at_once_loses_nothing(registry: Registry, place: str) -> None:
    """B2, C3: half of the processes submit while the other half takes."""
    program = REGISTER.replace("sys.stdin.readline()", "sys.stdin.readline()\nrole = argument[0]")
    body = program.split("for i in range(40):")
    both = (
        body[0]
        + "if role == 'r':\n  for i in range(40):"
        + body[1]
        + """
else:
  import time
  quiet = 0
  while quiet < 20:
    job = registry.claim("s")
    if job is None:
      quiet += 1
      time.sleep(0.05)
    else:
      quiet = 0
      print(job.job_id)
"""
    )
    printed = run_all(both, [[place, f"{role}{i}"] for role in "rc" for i in range(3)])
    registered, claimed = lines(printed[:3]), lines(printed[3:])
    late = [job.job_id for _ in range(200) if (job := registry.claim("s")) is not None]
    assert sorted(registered) == sorted(claimed + late)


def test_threads_of_one_process_share_a_handle(registry: Registry, place: str) -> None:
    """B4: the workers of a console."""
    ids = {answer.job_id for answer in registry.register([request(str(i)) for i in range(60)])}
    taken: list[str] = []
    problems: list[Exception] = []

    def work() -> None:
        try:
            while (job := registry.claim("alpha")) is not None:
                registry.next_seq(job.job_id)
                registry.finish(job.job_id, Status.COMPLETED, attempt=1)
                taken.append(job.job_id)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
    assert sorted(taken) == sorted(ids)
    assert {row.status for row in registry.store.find(Query())[0]} == {Status.COMPLETED}
    check_histories(place, list(ids))


def test_an_attempt_is_claimed_once_whatever_the_number_of_claims(
    registry: Registry, place: str
) -> None:
    """C3, decision 6: 8 processes, about 400 claims."""
    claim_and_check(registry, place, jobs=133, processes=8)


@pytest.mark.release
@pytest.mark.timeout(1800)
def test_thirty_two_processes_and_ten_thousand_claims(registry: Registry, place: str) -> None:
    """C3: no attempt of any job twice."""
    claim_and_check(registry, place, jobs=3334, processes=32)


def claim_and_check(registry: Registry, place: str, *, jobs: int, processes: int) -> None:
    """Each job is claimed three times: given up twice, finished the third time."""
    asked = [request(str(i), agent_session="s") for i in range(jobs)]
    ids = [answer.job_id for answer in registry.register(asked)]
    printed = run_all(CLAIM_AND_FINISH, [[place, ""]] * processes, timeout=1700)
    claims = lines(printed)
    late = run_all(CLAIM_AND_FINISH, [[place, ""]])
    claims += lines(late)
    assert sorted(claims) == sorted(f"{job_id} {n}" for job_id in ids for n in (1, 2, 3))
    assert {row.status for row in registry.store.find(Query())[0]} == {Status.COMPLETED}
    check_histories(place, ids)


def test_the_lock_of_the_document_makes_a_change_of_ones_own_safe(place: str) -> None:
    """B1: a script reads, thinks and writes under `registry_lock`, with others at it."""
    job_id = api.register_job("p", agent="a", agent_session="s", registry_dir=place)
    program = (
        START
        + """
for _ in range(30):
    with api.registry_lock(place):
        job = registry.get(argument)
        registry.edit(argument, {"priority": job.priority + 1})
"""
    )
    run_all(program, [[place, job_id]] * 4)
    assert close_later(open_registry(place)).get(job_id).priority == 120


@pytest.mark.parametrize("store", ["files", "sqlite", "postgres"])
def test_eight_writers_of_one_history_date_no_line_before_the_one_above(
    tmp_path: Path, store: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes, and lines that no change hangs on, which take no lock of the registry."""
    if store != "files":
        uri = f"sqlite:{tmp_path / 'jobs.sqlite'}"
        if store == "postgres":
            uri = request.getfixturevalue("postgres_schema")
        monkeypatch.setenv("MAM_STORE", uri)
    place = str(tmp_path / "jobs")
    registry = close_later(open_registry(place))
    job_id = add(registry)
    run_all(TELL, [[place, job_id]] * 8)
    told = list(registry.store.audit.events(job_id))
    assert [line["n"] for line in told] == list(range(1, 8 * 15 * 2 + 2))
    dates = [line["timestamp"] for line in told]
    assert dates == sorted(dates)
