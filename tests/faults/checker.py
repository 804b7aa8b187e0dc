"""The invariants: what must hold after any fault and one recovery.

    python -m tests.faults.checker ROOT

A rule is a function from the scene to sentences, one for each violation. A new
store, worker or console brings its own rules and adds them to `RULES`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from mam_core.records import TRANSITIONS, Job, Status
from tests.faults.diary import Act, Entry, Phase
from tests.faults.ground import Ground, recover
from tests.faults.leftovers import LEFTOVER_RULES
from tests.faults.scene import Scene, look, status_now
from tests.faults.weather import TORN
from tests.faults.workload import wanted

Rule = Callable[[Scene], Iterator[str]]

_BATCH = re.compile(r"(?P<batch>.+-b(?P<size>\d+))-\d+")

#: Acts whose answer is always a new version of the record.
_VERSIONS = (Act.CLAIM, Act.HEARTBEAT, Act.FINISH, Act.REQUEUE, Act.RETRY, Act.EDIT)
#: Those of them that the audit log has a line for, and what the line is called.
_TOLD = {
    Act.CLAIM: "status_changed",
    Act.FINISH: "status_changed",
    Act.REQUEUE: "status_changed",
    Act.RETRY: "status_changed",
    Act.EDIT: "edited",
}


def check(ground: Ground) -> list[str]:
    """Recover once, as the next user of the registry would, then list every violation."""
    recover(ground)
    return violations(look(ground))


def violations(scene: Scene) -> list[str]:
    return [sentence for rule in RULES for sentence in rule(scene)]


# -- records ---------------------------------------------------------------------------------


def every_record_can_be_read(scene: Scene) -> Iterator[str]:
    for problem in scene.unreadable:
        yield f"a record cannot be read: {problem}"
    for job_id, times in Counter(kept.job.job_id for kept in scene.kept).items():
        if times > 1:
            yield f"job {job_id} stands in {times} places"


def no_player_met_anything_strange(scene: Scene) -> Iterator[str]:
    for entry in scene.entries:
        if entry.phase is Phase.BROKEN:
            yield f"{entry.player} ({entry.act}) got no clear answer: {entry.facts['traceback']}"


def acknowledged_jobs_are_there(scene: Scene) -> Iterator[str]:
    for entry in scene.done(Act.REGISTER):
        for key, job_id in zip(entry.facts["keys"], entry.facts["ids"], strict=True):
            kept = scene.jobs.get(job_id)
            if kept is None:
                yield f"job {job_id} was acknowledged to {entry.player} and is lost"
                continue
            edited = {
                name
                for line in scene.history(job_id).lines
                for name in line.get("changed", ())
                if line.get("event") == "edited"
            }
            yield from _differences(kept.job, wanted(key), edited)


def _differences(job: Job, request: dict[str, Any], edited: set[str]) -> Iterator[str]:
    record = job.to_dict()
    for name, value in request.items():
        # A retry gives a job with a token a fresh one.
        if name in edited or name == "auth_token":
            same = (value is None) == (record[name] is None)
        elif name == "broker":
            same = record[name]["password"] == value["password"]
        else:
            same = record[name] == value
        if not same:
            yield f"job {job.job_id}: its {name} is {record[name]!r:.80}, asked was {value!r:.80}"


def batches_are_whole(scene: Scene) -> Iterator[str]:
    sizes: dict[str, int] = {}
    there: Counter[str] = Counter()
    for key in scene.by_key:
        if match := _BATCH.fullmatch(key):
            sizes[match["batch"]] = int(match["size"])
            there[match["batch"]] += 1
    for batch, size in sizes.items():
        if there[batch] != size:
            yield f"of the batch {batch} {there[batch]} of {size} jobs are there"


def a_key_names_one_live_job(scene: Scene) -> Iterator[str]:
    """A second job with a key is right only after the first had ended."""
    if scene.ground.clock.exists():
        return  # what was first, no timestamp tells any more
    for key, jobs in scene.by_key.items():
        jobs.sort(key=lambda job: job.order or 0)
        for earlier, later in pairwise(jobs):
            born = scene.history(later.job_id).lines[:1]
            ended = [
                line["timestamp"]
                for line in scene.history(earlier.job_id).moves
                if Status(line["to"]).is_ended
            ]
            if born and not any(moment <= born[0]["timestamp"] for moment in ended):
                yield (
                    f"key {key} was given to job {later.job_id} while job {earlier.job_id} was live"
                )


# -- acknowledgements ------------------------------------------------------------------------


def an_attempt_is_claimed_once(scene: Scene) -> Iterator[str]:
    claimers: dict[tuple[str, int], list[str]] = defaultdict(list)
    for entry in scene.done(Act.CLAIM):
        if entry.facts:
            claimers[entry.facts["job"], entry.facts["attempt"]].append(entry.player)
    for (job_id, attempt), players in claimers.items():
        if len(players) > 1:
            yield f"attempt {attempt} of job {job_id} was claimed by {', '.join(players)}"


def no_version_is_acknowledged_twice(scene: Scene) -> Iterator[str]:
    """Two answers with one revision would mean that one change overwrote the other."""
    owners: dict[tuple[str, int], list[Entry]] = defaultdict(list)
    for entry in scene.done(*_VERSIONS):
        if entry.facts:
            owners[entry.facts["job"], entry.facts["revision"]].append(entry)
    for (job_id, revision), entries in owners.items():
        if len(entries) > 1:
            who = ", ".join(f"{entry.act} by {entry.player}" for entry in entries)
            yield f"version {revision} of job {job_id} was acknowledged twice: {who}"


def nothing_acknowledged_is_undone(scene: Scene) -> Iterator[str]:
    for entry in scene.done(*_VERSIONS, Act.OVERRIDE, Act.CANCEL):
        if not entry.facts:
            continue  # a claim that found nothing
        job_id, revision = entry.facts["job"], entry.facts["revision"]
        kept = scene.jobs.get(job_id)
        if kept is None:
            yield f"job {job_id}, changed by {entry.player} ({entry.act}), is not there"
            continue
        for name in ("revision", "attempt"):
            if getattr(kept.job, name) < entry.facts[name]:
                yield (
                    f"job {job_id} is at {name} {getattr(kept.job, name)}; {entry.player} "
                    f"({entry.act}) was told {entry.facts[name]}"
                )
        event = _TOLD.get(entry.act)
        if event is None:
            continue
        line = scene.history(job_id).at(revision)
        if line is None or line.get("event") != event:
            yield f"the {entry.act} of job {job_id} by {entry.player} is not in its history"
        elif event == "status_changed" and line["to"] != entry.facts["status"]:
            yield (
                f"{entry.player} was told that job {job_id} is {entry.facts['status']} and its "
                f"history says {line['to']}"
            )


def a_cancel_is_kept(scene: Scene) -> Iterator[str]:
    for entry in scene.done(Act.CANCEL):
        status = Status(entry.facts["status"])
        if not (status.is_ended or entry.facts["cancelling"]):
            yield f"a cancel of job {entry.facts['job']} was answered with {status}"
            continue
        lines = scene.history(entry.facts["job"]).lines
        up_to = [line for line in lines if line.get("revision", 0) <= entry.facts["revision"]]
        if not any(
            line.get("event") == "cancel_requested"
            or (line.get("event") == "status_changed" and Status(line["to"]).is_ended)
            for line in up_to
        ):
            yield f"the cancel of job {entry.facts['job']} by {entry.player} left no trace"


def numbers_are_handed_out_once(scene: Scene) -> Iterator[str]:
    taken: dict[str, list[int]] = defaultdict(list)
    open_calls: Counter[str] = Counter()
    for entry in scene.entries:
        if entry.act is Act.SEQ:
            step = {Phase.BEGUN: 1, Phase.DONE: -1, Phase.REFUSED: -1}.get(entry.phase, 0)
            open_calls[entry.facts["job"]] += step
            if entry.phase is Phase.DONE:
                taken[entry.facts["job"]].append(entry.facts["seq"])
    for job_id, kept in scene.jobs.items():
        numbers, last = taken[job_id], kept.job.last_seq
        for number, times in Counter(numbers).items():
            if times > 1:
                yield f"event number {number} of job {job_id} was handed out {times} times"
        if numbers and max(numbers) > last:
            yield f"job {job_id} has last_seq {last}; {max(numbers)} was handed out"
        # Who was killed between the record and the answer has used a number up.
        if scene.entries and not len(numbers) <= last <= len(numbers) + open_calls[job_id]:
            yield (
                f"job {job_id} has last_seq {last}; {len(numbers)} numbers were handed out and "
                f"{open_calls[job_id]} calls were cut off"
            )


def refusals_are_audited(scene: Scene) -> Iterator[str]:
    asked = Counter(
        entry.facts["job"]
        for entry in scene.entries
        if entry.phase is Phase.REFUSED and entry.facts["error"] == "StaleAttempt"
    )
    for job_id, count in asked.items():
        told = sum(line.get("event") == "refused" for line in scene.history(job_id).lines)
        if told < count:
            yield f"{count} writes of old attempts of job {job_id} were refused, {told} are audited"


# -- histories -------------------------------------------------------------------------------


def histories_are_numbered(scene: Scene) -> Iterator[str]:
    for job_id, history in scene.histories.items():
        for raw in history.broken:
            if raw == TORN and raw is history.broken[-1]:
                continue  # planted at its end, and nobody has written there since
            yield f"the history of job {job_id} has a torn line: {raw[:80]!r}"
        numbers = [line.get("n") for line in history.lines]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"the history of job {job_id} is numbered {numbers}"


def histories_are_whole(scene: Scene) -> Iterator[str]:
    """Every status, attempt and version follows from the one before, and the last is the truth."""
    for job_id, kept in scene.jobs.items():
        history = scene.history(job_id)
        if not history.lines or history.lines[0].get("event") != "registered":
            yield f"the history of job {job_id} does not begin with its registration"
            continue
        if history.meta is None:
            yield f"job {job_id} has no meta.json"
        status, attempt, revision = Status.PENDING, 0, 0
        for line in history.lines:
            at = f"line {line.get('n')} of job {job_id}"
            if "revision" in line:
                if line["revision"] <= revision:
                    yield f"{at} tells of version {line['revision']} after {revision}"
                revision = line["revision"]
            if line.get("event") != "status_changed":
                continue
            old, new = Status(line["from"]), Status(line["to"])
            if old is not status:
                yield f"{at} says from {old}; the line before says {status}"
            if new not in TRANSITIONS[old] and line.get("cause") != "override":
                yield f"{at} goes from {old} to {new} by {line.get('cause')}"
            step = 1 if new is Status.RUNNING else 0
            if line["attempt"] != attempt + step:
                yield f"{at} is of attempt {line['attempt']}; the one before was {attempt}"
            status, attempt = new, line["attempt"]
        if kept.job.attempt != attempt:
            yield f"job {job_id} is at attempt {kept.job.attempt}; its history says {attempt}"
        if kept.job.revision < revision:
            yield f"job {job_id} is at version {kept.job.revision}; its history says {revision}"
        said = status_now(history)
        logged = (history.status or {}).get("status")
        if not kept.job.status == said == logged:
            yield (
                f"job {job_id} is {kept.job.status}; its history says {said} and its "
                f"status.json {logged}"
            )


def edits_are_the_last_word(scene: Scene) -> Iterator[str]:
    for job_id, kept in scene.jobs.items():
        record = kept.job.to_dict()
        last: dict[str, Any] = {}
        for line in scene.history(job_id).lines:
            if line.get("event") == "edited":
                last |= {name: change["to"] for name, change in line["changed"].items()}
        for name, value in last.items():
            if record[name] != value:
                yield f"job {job_id}: its {name} was edited to {value!r} and is {record[name]!r}"


def the_archive_is_told(scene: Scene) -> Iterator[str]:
    for job_id, kept in scene.jobs.items():
        where = [
            line["batch"] if line["event"] == "archived" else ""
            for line in scene.history(job_id).lines
            if line.get("event") in ("archived", "restored")
        ]
        if kept.batch != (where[-1] if where else ""):
            yield (
                f"job {job_id} lies in {kept.batch or 'the registry'}; its history says "
                f"{(where[-1] if where else '') or 'the registry'}"
            )


RULES: list[Rule] = [
    every_record_can_be_read,
    no_player_met_anything_strange,
    acknowledged_jobs_are_there,
    batches_are_whole,
    a_key_names_one_live_job,
    an_attempt_is_claimed_once,
    no_version_is_acknowledged_twice,
    nothing_acknowledged_is_undone,
    a_cancel_is_kept,
    numbers_are_handed_out_once,
    refusals_are_audited,
    histories_are_numbered,
    histories_are_whole,
    edits_are_the_last_word,
    the_archive_is_told,
    *LEFTOVER_RULES,
]


def main() -> int:
    parser = argparse.ArgumentParser(description="recover once, then list every violation")
    parser.add_argument("root", help="the folder that a workload played in")
    found = check(Ground(Path(parser.parse_args().root)))
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
