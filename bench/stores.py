"""The figures of the databases: claiming from SQLite and PostgreSQL, and how soon a feed hears.

The server is PostgreSQL's own, started for the run with every sync on, or the one that
MAM_TEST_POSTGRES names.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import psycopg

from bench.figures import Figure, Measure, Wrong
from bench.ground import LABELS, Ground
from bench.rounds import Runner, run
from bench.store_yardsticks import BarePostgres, BareSqlite, ClaimCrowd, Claims, Procrastinate
from bench.yardsticks import HueyQueues
from mam_core.events.feed import Feed, JobChanged
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.store_urls import StoreUrl
from mam_core.wiring import store_at
from tests.support.postgres import VARIABLE, Server, new_schema, private_folder

#: Read before the run puts every setting of ours aside.
_NAMED = os.environ.get(VARIABLE)
_CROWDS = (1, 8, 32)
_EVENTS = 200
#: Claims of each process that are not counted: drivers prepare a statement at its sixth use, and
#: the server keeps a plan after five.
_WARM = 12


class Ours:
    """Claims by way of the registry, as a worker's are."""

    def __init__(self, url: str, path: str) -> None:
        self.registry = Registry(store_at(StoreUrl.parse(url), path), actor="bench", node="here")

    def claim(self, label: str) -> str:
        job = self.registry.claim(label)
        if job is None:
            raise Wrong(f"no job of {label} is left")
        return job.job_id

    def close(self) -> None:
        self.registry.store.close()


def sqlite_claim(ground: Ground) -> list[Figure]:
    figures: list[Figure] = []
    effort = ground.effort
    for pending in dict.fromkeys((effort.pending, effort.large)):
        ours = Ours(f"sqlite:{_file(ground, f'ours-{pending}')}", ground.path("sqlite"))
        ours.registry.register(ground.new_jobs(pending))
        huey = HueyQueues(_file(ground, f"huey-{pending}"))
        huey.fill(LABELS, pending, ground.record)
        bare = BareSqlite(_file(ground, f"bare-{pending}"))
        bare.fill(LABELS, pending, ground.record)
        samples = run(
            [
                _claiming("ours", ours.claim, effort.claims),
                _claiming("huey", huey.claim, effort.claims),
                _claiming("bare", bare.claim, effort.claims),
            ],
            effort.rounds,
        )
        for side in (ours, huey, bare):
            side.close()
        what = f"SQLite claim at {pending:,} pending"
        mine = samples["ours"]
        figures += [
            Figure("sqlite-claim", what, "SqliteHuey", Measure.SPEED, mine, samples["huey"], 1.3),
            Figure("sqlite-claim", what, "bare UPDATE", Measure.SPEED, mine, samples["bare"], 0.7),
        ]
    return figures


def sqlite_history(ground: Ground) -> list[Figure]:
    def made(name: str) -> Ours:
        return Ours(f"sqlite:{_file(ground, name)}", ground.path("sqlite"))

    return [_history(ground, "sqlite-history", "SQLite", made("few"), made("old"))]


def postgres_claim(ground: Ground) -> list[Figure]:
    figures: list[Figure] = []
    effort = ground.effort
    with _server() as uri:
        most = max(1, round(effort.share * _CROWDS[-1]))
        for count in sorted({min(count, most) for count in _CROWDS}):
            schema = new_schema(uri)
            claims = max(2, 4 * effort.claims // count)
            rounds = effort.crowd_rounds // len(LABELS) + 2
            need = len(LABELS) * ((claims + 1) * rounds + _WARM) * count
            with_ours = Ours(schema, ground.path("postgres"))
            with_ours.registry.register(ground.new_jobs(need))
            with_ours.close()
            bare = BarePostgres(schema)
            bare.fill(LABELS, need, ground.record)
            bare.close()
            other = Procrastinate(schema)
            other.fill(schema, LABELS, need, b'{"a": 1}')
            other.close()
            _analyze(schema)
            sides: dict[str, Callable[[], Claims]] = {
                "ours": partial(Ours, schema, ground.path("postgres")),
                "bare": partial(BarePostgres, schema),
                "procrastinate": partial(Procrastinate, schema),
            }
            crowds = {name: ClaimCrowd(count, make) for name, make in sides.items()}
            try:
                for crowd in crowds.values():
                    crowd.claim(LABELS[-1], _WARM)
                runners = [_crowding(name, crowd, claims) for name, crowd in crowds.items()]
                samples = run(runners, effort.crowd_rounds)
            finally:
                for crowd in crowds.values():
                    crowd.close()
            what = f"PostgreSQL claim, {count} at once"
            name, mine = f"postgres-claim-{count}", samples["ours"]
            figures += [
                Figure(name, what, "bare SKIP LOCKED", Measure.SPEED, mine, samples["bare"], 0.7),
                Figure(
                    name, what, "procrastinate", Measure.SPEED, mine, samples["procrastinate"], 2
                ),
            ]
    return figures


def postgres_history(ground: Ground) -> list[Figure]:
    with _server() as uri:
        path = ground.path("postgres")
        few, old = (Ours(new_schema(uri), path) for _ in range(2))
        return [_history(ground, "postgres-history", "PostgreSQL", few, old)]


def notify(ground: Ground) -> list[Figure]:
    """From the beginning of a change to the feed's item, and to a bare LISTEN of the same."""
    with _server() as uri, ExitStack() as stack:
        schema = new_schema(uri)
        ours = Ours(schema, ground.path("postgres"))
        stack.callback(ours.close)
        (answer,) = ours.registry.register(ground.new_jobs(1))
        heard: dict[int, float] = {}
        begun: dict[int, float] = {}
        bare: list[float] = []
        stop = threading.Event()
        ready = threading.Event()

        def listen() -> None:
            with psycopg.connect(schema, autocommit=True) as ear:
                row = ear.execute(
                    "SELECT quote_ident('mam_changes_' || current_schema())"
                ).fetchone()
                assert row is not None
                ear.execute(f"LISTEN {row[0]}".encode())
                ready.set()
                while not stop.is_set():
                    for _ in ear.notifies(timeout=0.2, stop_after=1):
                        bare.append(time.perf_counter())

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        ready.wait()
        registry = Registry(store_at(StoreUrl.parse(schema), ground.path("postgres")))
        feed = stack.enter_context(
            Feed(registry, registry_path=ground.path("postgres"), connect=None)
        )
        feed.take(0.5)
        bare.clear()
        at: list[float] = []
        for _ in range(ground.effort.some(_EVENTS)):
            began = time.perf_counter()
            seq = ours.registry.next_seq(answer.job_id)
            begun[seq] = began
            deadline = time.monotonic() + 10
            while seq not in heard:
                if time.monotonic() > deadline:
                    raise Wrong("a change was not told")
                for item in feed.take(0.5):
                    if isinstance(item, JobChanged) and item.job is not None:
                        heard[getattr(item.job, "last_seq", 0)] = time.perf_counter()
            at.append(heard[seq] - began)
            time.sleep(0.005)
        stop.set()
        listener.join()
        pairs = list(zip(sorted(begun.values()), bare, strict=False))
        latencies = [arrived - began for began, arrived in pairs]
        mine, theirs = _percentile(at), _percentile(latencies)
    what = f"change to feed item, 95th percentile of {len(at)}"
    return [Figure("notify", what, "bare LISTEN", Measure.COST, [mine], [theirs], 3)]


FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "sqlite-claim": sqlite_claim,
    "sqlite-history": sqlite_history,
    "postgres-claim": postgres_claim,
    "postgres-history": postgres_history,
    "notify": notify,
}


# -- parts -----------------------------------------------------------------------------------


def _history(ground: Ground, name: str, store: str, few: Ours, old: Ours) -> Figure:
    """Claims among a few jobs: with nothing behind them, and with a large history."""
    for side in (few, old):
        side.registry.register(ground.new_jobs(ground.effort.few))
    _add_history(old.registry, ground)
    count = min(ground.effort.few_claims, ground.effort.few // len(LABELS) - 2)
    rounds = min(ground.effort.rounds, len(LABELS))
    sides = [_claiming("few", few.claim, count), _claiming("old", old.claim, count)]
    samples = run(sides, rounds)
    for side in (few, old):
        side.close()
    what = f"{store} claim with {ground.effort.large:,} finished jobs"
    return Figure(name, what, "with none", Measure.COST, samples["old"], samples["few"], 1.3)


def _add_history(registry: Registry, ground: Ground) -> None:
    """Finished jobs with a history, as a bulk that was registered and run would leave them."""
    from mam_core.audit import AuditEvent

    left = ground.effort.large
    while left > 0:
        count = min(left, 5_000)
        answers = registry.register(ground.new_jobs(count))
        with registry.store.transaction() as tx:
            for answer in answers:
                job = tx.get(answer.job_id).evolve(status=Status.COMPLETED, attempt=1, revision=2)
                tx.put(job, registry.line(AuditEvent.STATUS_CHANGED, job))
        left -= count


def _claiming(name: str, claim: Callable[[str], object], count: int) -> Runner:
    turn = [0]

    def before() -> None:
        turn[0] += 1
        claim(LABELS[turn[0] % len(LABELS)])

    def work() -> int:
        label = LABELS[turn[0] % len(LABELS)]
        for _ in range(count):
            claim(label)
        return count

    return Runner(name, work, before)


def _crowding(name: str, crowd: ClaimCrowd, claims: int) -> Runner:
    turn = [0]

    def before() -> None:
        turn[0] += 1
        crowd.claim(LABELS[turn[0] % len(LABELS)], 1)

    def work() -> int:
        return len(crowd.claim(LABELS[turn[0] % len(LABELS)], claims))

    return Runner(name, work, before)


@contextmanager
def _server() -> Iterator[str]:
    if _NAMED:
        yield _NAMED
        return
    import shutil

    root = private_folder()
    server = Server(root, "shared_buffers=128MB")
    try:
        server.start()
        yield server.uri
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


def _analyze(uri: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("ANALYZE")
        connection.execute("CHECKPOINT")


def _file(ground: Ground, name: str) -> str:
    folder = os.path.join(ground.root, "databases")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{name}.sqlite")


def _percentile(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
