"""What a user without privileges gets from a supervisor, told as JSON: run as such a user."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from mam_core.work.marks import end_leftovers, is_gone
from mam_core.work.orders import Isolation
from mam_core.work.reports import Started
from tests.support.supervision import Stage, stage


def stopped(here: Stage, way: Isolation) -> dict[str, object]:
    run = here.run("hostile", isolation=way, grace_sec=0.3)
    run.until_said("ready")
    started = run.until_told(Started)
    run.supervised.stop()
    ended = run.ended()
    left = len(here.survivors())
    run.finish()
    return {"isolation": started.isolation, "killed": ended.killed, "survivors": left}


def supervisor_killed(here: Stage, way: Isolation, agent: str) -> dict[str, object]:
    run = here.run(agent, isolation=way)
    run.until_said("ready")
    run.supervised.kill()
    run.ended()
    end_leftovers(run.the_mark, 0.2)
    told: dict[str, object] = {"survivors": len(here.survivors()), "gone": is_gone(run.the_mark)}
    run.finish()
    return told


def main() -> None:
    told: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as here:
        for way in Isolation:
            told[f"stopped {way}"] = stopped(here, way)
            for agent in ("hostile", "scrubs"):
                told[f"supervisor killed {way} {agent}"] = supervisor_killed(here, way, agent)
    json.dump({"uid": os.geteuid(), **told}, sys.stdout)


if __name__ == "__main__":
    main()
