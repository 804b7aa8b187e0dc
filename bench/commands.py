"""The figures of whole commands, from their start to their end: listing, picking, help."""

from __future__ import annotations

import json
import os

from bench.figures import Figure, Measure, Wrong
from bench.ground import LABELS, Ground
from bench.processes import MAM, output, process, python
from bench.rounds import less, run
from bench.yardsticks import IMPORTS, LOADS, SCANNING_MAM
from mam_core.stores.base import Query
from mam_core.wiring import open_registry


def list_table(ground: Ground) -> list[Figure]:
    words = ["list", "--registry-dir", ground.crowded]
    ours, scan = [MAM, *words], python(SCANNING_MAM, *words)
    if _first_words(output(ours)) != _first_words(output(scan)):
        raise Wrong("the list by the index is not the list by the scan")
    samples = run([process("ours", ours), process("scan", scan)], ground.effort.lists)
    what = f"mam list, {_jobs_in(ground.crowded):,} jobs"
    against = "the same by the scan"
    return [Figure("list", what, against, Measure.SPEED, samples["ours"], samples["scan"], 10)]


def list_json(ground: Ground) -> list[Figure]:
    ours = [MAM, "list", "--json", "--registry-dir", ground.crowded]
    printed = os.path.join(ground.root, "list.json")
    with open(printed, "wb") as file:
        file.write(output(ours))
    with open(printed, "rb") as file:
        if len(json.loads(file.read())) != _jobs_in(ground.crowded):
            raise Wrong("mam list --json does not print every job once")
    samples = run(
        [
            process("ours", ours),
            process("loads", python(LOADS, printed)),
            process("imports", python(IMPORTS)),
        ],
        ground.effort.lists,
    )
    size = os.path.getsize(printed) / 1e6
    what = f"mam list --json, {_jobs_in(ground.crowded):,} jobs, {size:.0f} MB"
    bare = samples["imports"]
    mine, theirs = samples["ours"], samples["loads"]
    return [
        Figure("list-json", what, "json.loads of it", Measure.COST, mine, theirs, 3),
        Figure(
            "list-json",
            f"{what}, less bare start-up",
            "json.loads, likewise",
            Measure.COST,
            less(mine, bare),
            less(theirs, bare),
            3,
        ),
    ]


def help_text(ground: Ground) -> list[Figure]:
    return _start(ground, "help", "mam --help", [MAM, "--help"])


def pick(ground: Ground) -> list[Figure]:
    pending = ground.effort.pending
    ground.top_up(ground.crowded, pending)
    command = [MAM, "pick", "--registry-dir", ground.crowded, "--agent-session", LABELS[0]]
    return _start(ground, "pick", f"mam pick, {pending:,} jobs", command)


def _start(ground: Ground, name: str, what: str, command: list[str]) -> list[Figure]:
    samples = run(
        [
            process("ours", command),
            process("imports", python(IMPORTS)),
            process("pass", python("pass")),
        ],
        ground.effort.starts,
    )
    ours = samples["ours"]
    imports = IMPORTS.removeprefix("import ")
    return [
        Figure(name, what, f"importing {imports}", Measure.COST, ours, samples["imports"], 1.5),
        Figure(name, what, "python -c pass", Measure.COST, ours, samples["pass"]),
    ]


def _jobs_in(path: str) -> int:
    with open_registry(path) as registry:
        return len(registry.store.find(Query())[0])


def _first_words(table: bytes) -> list[bytes]:
    return [line.split(None, 1)[0] for line in table.splitlines()]
