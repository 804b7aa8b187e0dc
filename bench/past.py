"""The figures of the past: a million audit lines, read once, and moved about in.

The logs are written as the registry writes them, line by line alike, but not by it: a
million claims and events would take an hour. Goals in seconds stand as a yardstick of
that length, as those of the sessions do; growing is measured against reading from zero.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bench.figures import Figure, Measure, Wrong
from bench.ground import LABELS, Ground
from mam_core.clock import fine_stamp, stamp
from mam_core.operations.history import History
from mam_core.operations.replay import Cursor, Loading, loading, replay
from mam_core.registry import Registry
from mam_core.wiring import open_registry

LINES_A_JOB = 100
_STEPS = 200
_STEP_GOAL_SEC = 0.1
_PAGE_GOAL_SEC = 0.3
_BEGIN = 1_781_861_400.0
_SPAN_SEC = 6 * 3600.0
_WORDS = "read src/imports/nightly.py and found the loop that asks for each row again"


def loading_once(ground: Ground) -> list[Figure]:
    """Beside `json.loads` of the same bytes: what cannot be spared."""
    with _registry(ground) as registry:
        before = _memory()
        began = time.perf_counter()
        loaded = _loaded(registry)
        took = time.perf_counter() - began
        grown = _memory() - before
        began = time.perf_counter()
        lines = _parsed(registry)
        parsing = time.perf_counter() - began
        if loaded.lines != lines or loaded.damaged:
            raise Wrong(f"{loaded.lines} of {lines} lines were read")
        what = f"load {lines:,} lines of {len(loaded.past.columns.job_ids):,} jobs"
        _say(f"{what}: {took:.1f} s, {grown / 1e6:.0f} MB")
        return [Figure("load", what, "json.loads of each", Measure.COST, [took], [parsing])]


def steps(ground: Ground) -> list[Figure]:
    with _registry(ground) as registry:
        past = _loaded(registry).past
        span = past.span
        if span is None:
            raise Wrong("there is no past")
        begin, end = span
        dice, moves = random.Random(1), ground.effort.some(_STEPS)
        figures = []
        for name, far in (("step", 1.0), ("minute", 60.0), ("jump", end - begin)):
            cursor = Cursor(past, (begin + end) / 2)
            samples = []
            for _ in range(moves):
                target = cursor.at + dice.choice([-far, far])
                if far > 3600 or not begin < target < end:
                    target = dice.uniform(begin, end)
                began = time.perf_counter()
                cursor.move(target)
                samples.append(time.perf_counter() - began)
            if {then.job_id: then for then in cursor.jobs()} != past.state_at(cursor.at):
                raise Wrong(f"after {moves} moves of {far:.0f} s another state is shown")
            figures.append(_within(name, f"move {far:,.0f} s", samples, _STEP_GOAL_SEC))
        samples = []
        for _ in range(9):
            began = time.perf_counter()
            past.state_at(dice.uniform(begin, end))
            samples.append(time.perf_counter() - began)
        return [*figures, _within("state", "all jobs at a moment", samples, _STEP_GOAL_SEC)]


def growing(ground: Ground) -> list[Figure]:
    """A thousand lines more, where the feed says of which jobs."""
    with _registry(ground) as registry:
        loaded = _loaded(registry)
        job_ids = loaded.past.columns.job_ids[: ground.effort.claimable]
        ours = []
        for turn in range(5):
            for job_id in job_ids:
                at = _BEGIN + _SPAN_SEC + turn
                line = {"timestamp": fine_stamp(at), "event": "published", "job_id": job_id}
                registry.store.audit.append(job_id, line | _event(job_id, 1000 + turn, at))
            began = time.perf_counter()
            for _ in loaded.run(job_ids):
                pass
            ours.append(time.perf_counter() - began)
        return [_within("grow", f"{len(job_ids):,} lines more", ours, 1.0)]


def once(ground: Ground) -> list[Figure]:
    """`mam replay --at`, without the start of a process."""
    with _registry(ground) as registry:
        began = time.perf_counter()
        found = replay(registry, _BEGIN + _SPAN_SEC / 2)
        took = time.perf_counter() - began
        began = time.perf_counter()
        _parsed(registry)
        parsing = time.perf_counter() - began
        if not found.jobs:
            raise Wrong("nothing is found")
        what = "replay of one moment"
        return [Figure("replay", what, "json.loads of each", Measure.COST, [took], [parsing])]


def history(ground: Ground) -> list[Figure]:
    with _registry(ground) as registry:
        began = time.perf_counter()
        with History(registry) as first:
            for _ in first.refresh():
                pass
        took = time.perf_counter() - began
        _say(f"history from nothing: {took:.1f} s")
        opened, rows = [], min(500, ground.effort.logs)
        for _ in range(5):
            began = time.perf_counter()
            with History(registry) as again:
                page = again.page(limit=rows)
            opened.append(time.perf_counter() - began)
            if len(page) != rows:
                raise Wrong(f"a page has {len(page)} rows")
        looked = []
        for _ in range(5):
            with History(registry) as again:
                began = time.perf_counter()
                for _ in again.refresh():
                    pass
                looked.append(time.perf_counter() - began)
        return [
            _within("page", "open and show the first page", opened, _PAGE_GOAL_SEC),
            _within("look", "look for what is new in all logs", looked, 1.0),
        ]


FIGURES: Mapping[str, Callable[[Ground], list[Figure]]] = {
    "load": loading_once,
    "steps": steps,
    "grow": growing,
    "replay": once,
    "history": history,
}


def _within(name: str, what: str, samples: list[float], goal_sec: float) -> Figure:
    slowest = sorted(samples)[int(len(samples) * 0.99)]
    _say(f"{what}: 99 of 100 within {slowest * 1000:.1f} ms")
    goal = [goal_sec] * len(samples)
    against = f"{goal_sec * 1000:.0f} ms"
    return Figure(name, what, against, Measure.COST, samples, goal, goal=1.0)


def _say(words: str) -> None:
    print(f"        {words}", file=sys.stderr, flush=True)


def _loaded(registry: Registry) -> Loading:
    loaded = loading(registry)
    loaded.finish()
    return loaded


def _parsed(registry: Registry) -> int:
    audit = registry.store.audit
    count = 0
    for job_id in audit.job_ids():
        for raw in audit.lines(job_id):
            json.loads(raw)
            count += 1
    return count


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# -- the logs --------------------------------------------------------------------------------


def past_of(ground: Ground) -> str:
    """The path of a registry with a million audit lines, and no record."""
    with _registry(ground):
        return ground.path("past")


def _registry(ground: Ground) -> Registry:
    """With a past of its own, made when it is first asked for."""
    path = ground.path("past")
    made = os.path.isdir(path)
    registry = open_registry(path)
    if not made:
        os.makedirs(path, mode=0o700)
        dice = random.Random(2)
        os.makedirs(registry.store.audit.path, mode=0o700, exist_ok=True)
        for number in range(ground.effort.logs):
            _write(registry.store.audit.path, number, dice)
        os.sync()
    return registry


def _write(root: str, number: int, dice: random.Random) -> None:
    job_id = f"job{number:06d}"
    folder = os.path.join(root, job_id)
    os.mkdir(folder, 0o700)
    begin = _BEGIN + dice.random() * _SPAN_SEC * 0.9
    meta = {
        "job_id": job_id,
        "status": "pending",
        "created_at": stamp(begin),
        "prompt": _WORDS,
        "agent": "claude-code",
        "agent_session": LABELS[number % len(LABELS)],
        "order": int(begin * 1e6),
    }
    _put(os.path.join(folder, "meta.json"), json.dumps(meta).encode())
    lines = [json.dumps({"n": n, **line}) for n, line in enumerate(_lines(job_id, begin, dice), 1)]
    _put(os.path.join(folder, "events.ndjson"), ("\n".join(lines) + "\n").encode())


def _put(path: str, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(data)


def _lines(job_id: str, at: float, dice: random.Random) -> Iterator[dict[str, Any]]:
    """Two attempts: claimed, many events, an error; retried, and completed."""
    revision, seq = 1, 0

    def line(event: str, **facts: Any) -> dict[str, Any]:
        head = {"timestamp": fine_stamp(at), "event": event, "job_id": job_id}
        return head | {"revision": revision, "by": "ann"} | facts

    def moved(was: str, to: str, cause: str, attempt: int) -> dict[str, Any]:
        facts = {"from": was, "to": to, "cause": cause, "attempt": attempt}
        return line("status_changed", **facts, node="host")

    yield line("registered", attempt=0)
    for attempt, end in ((1, "error"), (2, "completed")):
        at, revision = at + dice.random() * 5, revision + 1
        yield moved("pending", "running", "claim", attempt)
        for _ in range(LINES_A_JOB // 2 - 3):
            at, seq = at + dice.random() * 20, seq + 1
            event = _event(job_id, seq, at, attempt)
            yield {"timestamp": fine_stamp(at), "event": "published", "job_id": job_id} | event
        at, revision = at + 1, revision + 1
        yield line("attempt_ended", attempt=attempt, cost=0.25, tokens={"input": 9, "output": 3})
        yield moved("running", end, "end", attempt)
        if attempt == 1:
            revision += 1
            yield moved("error", "pending", "retry", attempt)


def _event(job_id: str, seq: int, at: float, attempt: int = 2) -> dict[str, Any]:
    payload = {
        "schema_version": 1,
        "seq": seq,
        "job_id": job_id,
        "attempt": attempt,
        "event": "progress",
        "timestamp": stamp(at),
        "detail": f"{_WORDS} ({seq})",
        "data": {"progress": 0.5},
    }
    told = {"attempt": attempt, "seq": seq, "topic": f"python/mqtt/jobs/{job_id}/events"}
    return told | {"payload": payload, "said_at": fine_stamp(at)}
