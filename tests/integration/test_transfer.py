"""From store to store and back: everything arrives, byte by byte, whatever is killed (L7)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mam_core.cli.main import main
from mam_core.config import load
from mam_core.errors import InvalidField, TransitionRefused
from mam_core.estate import Estate, Kind, Piece
from mam_core.events.event import EventName
from mam_core.leases import LeaseTerms
from mam_core.operations import transfer as module
from mam_core.operations.transfer import TransferUnproven, between, transfer
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.store_urls import StoreKind, StoreUrl
from mam_core.stores.base import GateKind, Paper, Query
from mam_core.wiring import estate_of, store_at
from tests.support.feeds import Hand
from tests.support.jobs import add, in_status

STORES = ("files", "sqlite", "postgres")
#: From folder to folder things are moved: see test_migrate.
PAIRS = [(kind, via) for kind in STORES for via in STORES]
Ends = Callable[[str, str], StoreUrl]


@pytest.fixture
def end(request: pytest.FixtureRequest, tmp_path: Path) -> Ends:
    """The url of a store of that kind, with a name of its own."""
    made: dict[tuple[str, str], StoreUrl] = {}

    def url(kind: str, name: str) -> StoreUrl:
        if (kind, name) not in made:
            if kind == "files":
                made[kind, name] = StoreUrl(StoreKind.FILES, str(tmp_path / name / "jobs"))
            elif kind == "sqlite":
                made[kind, name] = StoreUrl.parse(f"sqlite:{tmp_path / name}.sqlite")
            else:
                from tests.support.postgres import new_schema

                server = request.getfixturevalue("postgres_server")
                made[kind, name] = StoreUrl.parse(new_schema(server))
        return made[kind, name]

    return url


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[StoreUrl], Registry]]:
    with ExitStack() as stack:

        def open_one(url: StoreUrl) -> Registry:
            path = url.place if url.kind is StoreKind.FILES else str(tmp_path / "here" / "jobs")
            return stack.enter_context(Registry(store_at(url, path), actor="ann", node="host"))

        yield open_one


def fill(registry: Registry) -> None:
    """A bit of everything that a registry can hold."""
    add(registry, "plain")
    strange = add(registry, "별을 세어라", key="k", group="night", priority=3)
    with registry.store.transaction() as tx:
        tx.put(tx.get(strange).evolve(extra={"colour": {"a": [1, 2.5, None]}}), None)
    in_status(registry, Status.COMPLETED)
    failed = in_status(registry, Status.ERROR)
    registry.retry(failed)
    add(registry, "after that", after=[strange])
    registry.archive([in_status(registry, Status.CANCELLED)])
    registry.archive([in_status(registry, Status.COMPLETED)])
    registry.pause(GateKind.AGENT, "codex", why="quota")
    registry.set_slots("nightly", 2, why="for the night")
    Hand(registry).post(strange, EventName.PROGRESS, EventName.PROGRESS)
    registry.store.audit.append("strangejob", {"event": "received", "timestamp": "", "x": "\0"})
    registry.store.outbox.set_aside(Hand(registry).post(strange, EventName.PROGRESS)[0], "no")


def carry(source: StoreUrl, target: StoreUrl, here: Path, **more: Any) -> module.Transfer:
    with between(source, target, str(here / "here" / "jobs"), load()) as (old, new, path):
        return transfer(old, new, path, **more)


def contents(estate: Estate) -> dict[tuple[Kind, str], bytes]:
    return {piece.key: piece.digest for piece in estate.pieces()}


class TestThereAndBack:
    @pytest.mark.parametrize(
        ("kind", "via"), [pair for pair in PAIRS if pair != ("files", "files")]
    )
    def test_everything_is_the_same(
        self,
        end: Ends,
        opened: Callable[[StoreUrl], Registry],
        tmp_path: Path,
        kind: str,
        via: str,
    ) -> None:
        first, second, last = end(kind, "first"), end(via, "second"), end(kind, "last")
        fill(opened(first))
        before = contents(estate_of(opened(first).store))
        there = carry(first, second, tmp_path)
        assert there.refused == {}
        assert sum(there.carried.values()) == len(before)
        carry(second, last, tmp_path)
        assert contents(estate_of(opened(last).store)) == before
        assert contents(estate_of(opened(first).store)) == before, "the source is as it was"
        old, new = opened(first), opened(last)
        for row in old.store.find(Query())[0]:
            assert new.get(row.job_id) == old.get(row.job_id)
            assert list(new.store.audit.lines(row.job_id)) == list(
                old.store.audit.lines(row.job_id)
            )
            assert new.store.audit.meta(row.job_id) == old.store.audit.meta(row.job_id)
        assert new.store.find(Query()) == old.store.find(Query())
        assert new.store.facts().gates() == old.store.facts().gates()
        assert b"for the night" in (new.store.paper(Paper.ACTS) or b"")
        posts = [post.payload for post in old.store.outbox.posts(10)]
        assert [post.payload for post in new.store.outbox.posts(10)] == posts
        assert len(posts) == 2

    @pytest.mark.parametrize(("kind", "via"), [pair for pair in PAIRS if pair[0] != pair[1]])
    def test_the_new_one_works_on(
        self,
        end: Ends,
        opened: Callable[[StoreUrl], Registry],
        tmp_path: Path,
        kind: str,
        via: str,
    ) -> None:
        source, target = end(kind, "first"), end(via, "second")
        registry = opened(source)
        job_id = add(registry, agent_session="beta")
        ended = in_status(registry, Status.COMPLETED)
        registry.archive([ended])
        carry(source, target, tmp_path)
        new = opened(target)
        job = new.claim("beta")
        assert job is not None
        assert job.job_id == job_id
        assert [line["n"] for line in new.store.audit.events(job_id)] == [1, 2]
        assert new.restore() == [ended]
        assert add(new) not in (job_id, ended)
        status = new.store.audit.status(job_id)
        assert status is not None
        assert status["status"] == "running"


class TestWhatStandsInTheWay:
    def test_a_living_worker(
        self, end: Ends, opened: Callable[[StoreUrl], Registry], tmp_path: Path
    ) -> None:
        source, target = end("files", "a"), end("sqlite", "b")
        registry = opened(source)
        add(registry)
        registry.claim("alpha", lease=LeaseTerms("host:1:1:0", 30))
        with pytest.raises(TransitionRefused, match="is run by host:1:1:0"):
            carry(source, target, tmp_path)
        assert not os.path.exists(target.place)

    def test_a_job_that_is_there_already_and_differs(
        self, end: Ends, opened: Callable[[StoreUrl], Registry], tmp_path: Path
    ) -> None:
        source, target = end("files", "a"), end("sqlite", "b")
        job_id = add(opened(source))
        carry(source, target, tmp_path)
        opened(target).request_cancel(job_id)
        other = add(opened(source))
        done = carry(source, target, tmp_path)
        assert set(done.refused) == {f"record {job_id}", f"history {job_id}"}
        assert opened(target).get(job_id).status is Status.CANCELLED
        assert opened(target).get(other).status is Status.PENDING

    def test_the_same_place(self, end: Ends, tmp_path: Path) -> None:
        with pytest.raises(InvalidField, match="not carried to itself"):
            carry(end("sqlite", "a"), end("sqlite", "a"), tmp_path)

    def test_a_target_that_forgets(
        self,
        end: Ends,
        opened: Callable[[StoreUrl], Registry],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """What arrived is read again: nobody is told that all is well when it is not."""
        source, target = end("files", "a"), end("sqlite", "b")
        for _ in range(3):
            add(opened(source))
        real = estate_of

        def forgetful(store: Any) -> Estate:
            estate = real(store)
            put = estate.put
            estate.put = lambda pieces: put(pieces[:-1])  # type: ignore[method-assign]
            return estate

        monkeypatch.setattr(module, "estate_of", forgetful)
        with pytest.raises(TransferUnproven, match="did not arrive"):
            carry(source, target, tmp_path)


def test_what_nobody_can_read_goes_along_and_is_named(
    end: Ends, opened: Callable[[StoreUrl], Registry], tmp_path: Path
) -> None:
    source = end("files", "a")
    registry = opened(source)
    job_id = add(registry)
    jobs = Path(source.place)
    (jobs / "broken.json").write_bytes(b'{"schema_version": 1, "job_')
    newer = {**json.loads(registry.store.raw(job_id)), "schema_version": 2, "job_id": "newer"}
    (jobs / "newer.json").write_text(json.dumps(newer))
    (jobs / "notes.txt").write_text("mine")
    os.mkfifo(jobs / "pipe.json")
    done = carry(source, end("sqlite", "b"), tmp_path)
    assert [row.job_id for row in done.unreadable] == ["broken", "newer"]
    assert done.left == ["notes.txt", "pipe.json"]
    there = opened(end("sqlite", "b"))
    assert [row.job_id for row in there.store.unreadable()] == ["broken", "newer"]
    assert there.store.raw("newer") == (jobs / "newer.json").read_bytes()
    carry(end("sqlite", "b"), end("files", "c"), tmp_path)
    assert (Path(end("files", "c").place) / "broken.json").read_bytes() == (
        jobs / "broken.json"
    ).read_bytes()


def test_a_name_from_a_database_never_leaves_the_folder(
    end: Ends, opened: Callable[[StoreUrl], Registry]
) -> None:
    estate = estate_of(opened(end("files", "a")).store)
    with estate.opened():
        for piece in (
            Piece(Kind.UNREADABLE, "../out", b"x"),
            Piece(Kind.ARCHIVED, "../../out/x", b"x"),
            Piece(Kind.POST, "1/../../x", b"x"),
            Piece(Kind.HISTORY, "../x", b"x"),
        ):
            with pytest.raises(Exception, match=r"cannot be the name of a file|is no job id"):
                estate.put([piece])


@pytest.mark.parametrize(("kind", "via"), [("files", "sqlite"), ("sqlite", "files")])
def test_killed_in_the_middle_it_goes_on_where_it_was(
    end: Ends,
    opened: Callable[[StoreUrl], Registry],
    tmp_path: Path,
    kind: str,
    via: str,
) -> None:
    source, target = end(kind, "first"), end(via, "second")
    registry = opened(source)
    for number in range(60):
        job_id = add(registry, f"job {number}")
        registry.claim("alpha")
        registry.finish(job_id, Status.ERROR, attempt=1, reason=Reason.EXIT)
    before = contents(estate_of(registry.store))
    registry.store.close()
    program = (
        "import sys, time\n"
        "from mam_core.operations import transfer as module\n"
        "from mam_core.config import load\n"
        "from mam_core.store_urls import StoreKind, StoreUrl\n"
        "module._PIECES = 1\n"
        "real = module._put\n"
        "def slow(*given):\n"
        "    real(*given); time.sleep(0.01); print('.', flush=True)\n"
        "module._put = slow\n"
        "ends = [StoreUrl(StoreKind(k), p) for k, p in (sys.argv[1:3], sys.argv[3:5])]\n"
        "with module.between(*ends, sys.argv[5], load()) as (old, new, path):\n"
        "    module.transfer(old, new, path)\n"
    )
    words = [source.kind, source.place, target.kind, target.place, str(tmp_path / "h" / "jobs")]
    for put in (10, 25):
        with subprocess.Popen(
            [sys.executable, "-c", program, *words], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            for _ in range(put):
                child.stdout.readline()
            child.send_signal(signal.SIGKILL)
    done = carry(source, target, tmp_path)
    assert done.already >= 25
    assert contents(estate_of(opened(target).store)) == before


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["--prompt", "hi", "--agent", "shell", "--agent-session", "tmux:a"]
    assert main(["register", *given]) == 0
    job_id = capsys.readouterr().out.strip()
    assert main(["migrate", "--to", "sqlite:jobs.sqlite", "--dry-run"]) == 0
    assert "would carry 1 history, 1 record" in capsys.readouterr().err
    assert not (tmp_path / "jobs.sqlite").exists()
    assert main(["migrate", "--to", "sqlite:jobs.sqlite"]) == 0
    assert "carried and compared: 1 history, 1 record" in capsys.readouterr().err
    assert main(["--store", "sqlite:jobs.sqlite", "get", job_id]) == 0
    monkeypatch.delenv("MAM_STORE")
    assert main(["migrate", "--from", "sqlite:jobs.sqlite", "--to", "other"]) == 0
    assert (tmp_path / "other" / "jobs" / f"{job_id}.json").exists()
    (tmp_path / "mam.toml").write_text('[store]\nurl = "sqlite:jobs.sqlite"\n')
    shutil.rmtree(tmp_path / ".mam")
    assert main(["migrate", "--to", "files"]) == 0
    assert (tmp_path / ".mam" / "jobs" / f"{job_id}.json").exists()
    assert main(["migrate", "--from", "files", "--to", "sqlite:more.sqlite"]) == 0
    assert not (tmp_path / "files").exists()
    assert main(["migrate", "--to", "sqlit:more.sqlite"]) == 2
    assert not (tmp_path / "sqlit:more.sqlite").exists()
    assert main(["migrate", "--to", "postgresql://me:hush@db/jobs"]) == 2
    assert "hush" not in capsys.readouterr().err
