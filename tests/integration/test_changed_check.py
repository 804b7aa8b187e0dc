"""A check that the agent can rewrite is one that it can pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam_core.operations.verify import verify
from mam_core.operations.why import why
from mam_core.records import Job, Reason, Status
from mam_core.work.check_files import digests
from tests.support.working import Workshop, workshop

WORDS = "check changed: ./check.sh is not what it was when the job was registered"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    with workshop(tmp_path) as made:
        script(made.workdir / "check.sh", "test -s result")
        yield made
        made.until_nobody_lives()


def script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def ran(shop: Workshop, does: str) -> Job:
    return shop.run(shop.agent("agent", "/bin/sh", "-c", does), validate="./check.sh")


CHEATS = "printf '#!/bin/sh\\nexit 0\\n' >check.sh"


def test_one_that_stayed_is_not_mentioned(shop: Workshop) -> None:
    job = ran(shop, "echo x >result")
    assert (job.status, job.detail) == (Status.COMPLETED, None)
    assert list(job.check_files or ()) == ["./check.sh"]


def test_one_that_the_agent_rewrote_is_said_everywhere(shop: Workshop) -> None:
    job = ran(shop, CHEATS)
    assert (job.status, job.detail) == (Status.COMPLETED, WORDS)
    assert WORDS in why(shop.registry, job.job_id).sentences[0]
    (verified,) = verify(shop.registry, [job.job_id])
    assert WORDS in [check.words for check in verified.checks]
    lines = shop.registry.store.audit.events(job.job_id)
    assert [line.get("detail") for line in lines if line.get("cause") == "end"] == [WORDS]


def test_where_it_must_not_change_the_job_fails(shop: Workshop) -> None:
    shop.be_strict()
    job = ran(shop, CHEATS)
    assert (job.status, job.reason, job.detail) == (Status.ERROR, Reason.VALIDATION, WORDS)


def test_one_that_is_gone_has_changed(shop: Workshop) -> None:
    job = ran(shop, "rm check.sh")
    assert job.status is Status.ERROR  # it cannot be run, either
    (verified,) = verify(shop.registry, [job.job_id])
    assert WORDS in [check.words for check in verified.checks]


def test_by_a_person_it_is_another_check(shop: Workshop) -> None:
    job_id = shop.add(shop.agent("agent", "/bin/sh", "-c", CHEATS), validate="./check.sh")
    script(shop.workdir / "other.sh", "true")
    shop.registry.edit(job_id, {"validate": "./other.sh"})
    assert list(shop.job(job_id).check_files or ()) == ["./other.sh"]
    shop.drain()
    assert shop.job(job_id).detail is None


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("./check.sh --fast", ["./check.sh"]),
        ("sh check.sh", ["check.sh"]),
        (
            "set -e; LANG=C python3 -u tools/check.py result && ./check.sh",
            ["tools/check.py", "./check.sh"],
        ),
        ("if ! bash -e check.sh; then exit 1; fi", ["check.sh"]),
        ("cat check.sh | sh", []),  # read, not run, as far as one can tell
        ("test -s check.sh", []),
        ("grep -q x notes.md", []),
        ("sh ../outside.sh", []),
        ("/bin/true", []),
        ("sh -c 'unclosed", []),
    ],
)
def test_only_programs_of_the_folder_count(tmp_path: Path, line: str, names: list[str]) -> None:
    home = tmp_path / "home"
    (home / "tools").mkdir(parents=True)
    for name in ("check.sh", "tools/check.py", "notes.md", "../outside.sh"):
        (home / name).write_text("x")
    assert list(digests(line, str(home)) or ()) == names
