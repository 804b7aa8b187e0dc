"""A crowd of processes that claim at the same time, from us or from huey."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from bench.figures import Wrong
from bench.yardsticks import HueyQueues
from mam_core.wiring import open_registry

OURS = "ours"
HUEY = "huey"

_PATIENCE_SEC = 60.0


class _Order(NamedTuple):
    side: str
    label: str
    claims: int


class Crowd:
    """Every process keeps its handles open and waits for the word."""

    def __init__(self, count: int, registry_path: str, huey_path: str) -> None:
        # A fresh interpreter each: a forked one would share our connections.
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        for _ in range(count):
            mine, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, registry_path, huey_path))
            process.start()
            theirs.close()
            self._pipes.append(mine)
            self._processes.append(process)

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *exc: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(_PATIENCE_SEC)
            if process.is_alive():
                process.kill()
                process.join()

    def claim(self, side: str, label: str, claims: int) -> list[str]:
        """All at once, so many claims each; what they got, together."""
        for pipe in self._pipes:
            pipe.send(_Order(side, label, claims))
        taken: list[str] = []
        for pipe in self._pipes:
            if not pipe.poll(_PATIENCE_SEC):
                raise Wrong(f"a process that claims from {side} does not answer")
            answer = pipe.recv()
            if isinstance(answer, str):
                raise Wrong(f"a process that claims from {side}: {answer}")
            taken += answer
        return taken


def _serve(pipe: Connection, registry_path: str, huey_path: str) -> None:
    queues = HueyQueues(huey_path)
    with open_registry(registry_path) as registry:

        def ours(label: str) -> str:
            job = registry.claim(label)
            if job is None:
                raise LookupError(f"no job of {label} is left")
            return job.job_id

        def theirs(label: str) -> str:
            return queues.claim_in_a_crowd(label)[:8].decode()

        claim: dict[str, Callable[[str], str]] = {OURS: ours, HUEY: theirs}
        while True:
            try:
                order: _Order = pipe.recv()
            except EOFError:
                break
            try:
                pipe.send([claim[order.side](order.label) for _ in range(order.claims)])
            except Exception as problem:
                pipe.send(f"{type(problem).__name__}: {problem}")
    queues.close()
