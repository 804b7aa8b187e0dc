"""What needs a person: which situations do, in which order, and how one list follows them."""

from __future__ import annotations

import random
from typing import Any

from mam_core.agents.screens import Choice, Meaning
from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.board.why import Stuck
from mam_core.clock import stamp
from mam_core.leases import LeaseTerms
from mam_core.operations.answer import OpenQuestion
from mam_core.operations.asked import Asked
from mam_core.operations.attention import (
    MOST_CHARS,
    Need,
    NeedKind,
    Urgency,
    attention,
    need_of,
    needs,
)
from mam_core.operations.needs import Needs, told_in_words
from mam_core.operations.shown import Shown, ShownState
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.summaries import Summary
from tests.console.story import NOW, summary
from tests.support.clock import FakeClock
from tests.support.jobs import WORKER, add, running
from tests.support.rows import each_row

RUNNING, ERROR, PENDING = Status.RUNNING, Status.ERROR, Status.PENDING


def shown(state: ShownState, words: str = "", rule: str = "rule", at: float = NOW - 9) -> Shown:
    return Shown(state, words, "hook", rule, at)


def asks(words: str = "May I?", rule: str = "PermissionRequest", at: float = NOW - 9) -> Shown:
    return shown(ShownState.WAITING, words, rule, at)


def failed(reason: Reason | None, **changes: Any) -> Summary:
    return summary(1, ERROR, reason=reason, **changes)


WAITS = "the agent waits for a person"
SITUATIONS: dict[str, tuple[Summary, Shown | None, str, str]] = {
    "queued": (summary(1), None, "", ""),
    "working": (summary(1, RUNNING), shown(ShownState.WORKING), "", ""),
    "running, and nobody looked": (summary(1, RUNNING), None, "", ""),
    "hook asks": (summary(1, RUNNING), asks(), "permission", "May I?"),
    "stream asks": (summary(1, RUNNING), asks(rule="can_use_tool"), "permission", "May I?"),
    "event asks": (summary(1, RUNNING), asks(rule="permission_required"), "permission", "May I?"),
    "screen asks": (summary(1, RUNNING), asks("Which?", "question v3"), "question", "Which?"),
    "nobody knows what": (summary(1, RUNNING), asks("", "waits"), "question", WAITS),
    "asks, and is to end": (
        summary(1, RUNNING, cancel_requested_at=stamp(NOW)),
        asks(),
        "",
        "",
    ),
    "lease gone": (summary(1, RUNNING), shown(ShownState.LOST, "expired"), "lost", "expired"),
    "lease late": (summary(1, RUNNING), shown(ShownState.STALE, "late"), "", ""),
    "lost too often": (failed(Reason.LOST), None, "lost", "it was lost too often"),
    "checks failed": (
        failed(Reason.VALIDATION),
        None,
        "failed validation",
        "what it left behind did not pass",
    ),
    "too dear": (failed(Reason.BUDGET), None, "budget", "its budget is used up"),
    "exit": (failed(Reason.EXIT), None, "retries used up", "exit"),
    "no reason": (failed(None), None, "retries used up", "it failed"),
    "set by hand": (failed(Reason.OVERRIDE), None, "", ""),
    "long ago": (failed(Reason.EXIT, ended_at=stamp(NOW - 90_000)), None, "", ""),
    "over its quota": (
        summary(1, reason=Reason.QUOTA, not_before=NOW + 60),
        None,
        "quota",
        "its agent met a usage limit",
    ),
    "quota is over": (summary(1, reason=Reason.QUOTA, not_before=NOW - 1), None, "", ""),
    "given back": (summary(1, reason=Reason.LOST), None, "", ""),
    "done": (summary(1, Status.COMPLETED), None, "", ""),
    "cancelled": (summary(1, Status.CANCELLED, reason=Reason.CANCELLED), None, "", ""),
}


@each_row(("job", "state", "kind", "words"), SITUATIONS.values())
def test_which_situation_needs_a_person(
    job: Summary, state: Shown | None, kind: str, words: str
) -> None:
    need = needs(job, state, NOW)
    assert (str(need.kind), need.words) == (kind, words) if need else (kind, words) == ("", "")
    if need is not None:
        assert need.can_be_answered is (kind in ("permission", "question"))
        assert (need.job_id, need.session) == (job.job_id, "tmux:claude")


def test_an_error_speaks_in_its_own_words_but_not_endlessly() -> None:
    need = needs(failed(Reason.EXIT), None, NOW, detail="x" * 9000)
    assert need is not None
    assert need.words.startswith("exit: xxx")
    assert len(need.words) == MOST_CHARS


def test_urgency_comes_from_who_waits() -> None:
    assert [kind for kind in NeedKind if kind.urgency is Urgency.HIGH] == [
        NeedKind.PERMISSION,
        NeedKind.QUESTION,
    ]
    assert NeedKind.QUOTA.urgency is Urgency.LOW
    assert Urgency.LOW.rank < Urgency.NORMAL.rank < Urgency.HIGH.rank


class TestTheList:
    def test_puts_the_most_urgent_first_and_of_those_the_oldest(self) -> None:
        held = Needs()
        held.put(summary(1, ERROR, reason=Reason.EXIT), NOW)
        held.put(summary(2, RUNNING), NOW, shown=asks("young", at=NOW - 1))
        held.put(summary(3, RUNNING), NOW, shown=asks("old", at=NOW - 100))
        held.put(summary(4, RUNNING), NOW, shown=shown(ShownState.LOST))
        assert [need.job_id for need in held] == ["job0003", "job0002", "job0004", "job0001"]
        assert held.line_of("job0004") == 2
        assert told_in_words(held.counts) == "2 permission, 1 lost, 1 retries used up"

    def test_follows_what_changes(self) -> None:
        held = Needs()
        job = summary(1, RUNNING)
        assert held.put(job, NOW, shown=asks())
        assert not held.put(job._replace(last_seq=9), NOW), "shown as before"
        assert held.put(job, NOW, shown=shown(ShownState.WORKING))
        assert len(held) == 0
        held.put(job, NOW, shown=asks())
        assert held.put(job._replace(attempt=2), NOW), "the new attempt has not asked"
        held.put(job._replace(attempt=2), NOW, shown=asks("Again?"))
        assert held.remove(job.job_id)
        assert not held.remove(job.job_id)

    def test_keeps_what_was_read_in_full_while_it_is_asked(self) -> None:
        held, job = Needs(), summary(1, RUNNING)
        held.put(job, NOW, shown=asks())
        choice = Choice("Yes", ("1",), Meaning.YES, "1", True)
        assert held.read(
            job.job_id, [Asked(OpenQuestion("", "May I? It is long", number="7"), (choice,))]
        )
        held.put(job._replace(last_seq=3), NOW, shown=asks())
        assert (held[0].question, held[0].choices) == ("7", (choice,))
        assert held[0].to_dict(NOW)["choices"] == ["Yes"]
        held.put(job, NOW, shown=asks("Something else?", at=NOW))
        assert (held[0].question, held[0].choices) == ("", ())

    def test_what_is_put_aside_comes_back_when_it_is_something_else(self) -> None:
        held, job = Needs(), summary(1, RUNNING)
        held.put(job, NOW, shown=asks())
        assert held.put_aside(job.job_id)
        assert not held.put(job, NOW, shown=asks())
        assert held.put(job, NOW, shown=asks("Another?", at=NOW))

    def test_time_takes_old_ends_and_no_questions(self) -> None:
        held = Needs(recent_sec=100)
        held.put(summary(1, ERROR, reason=Reason.EXIT), NOW)
        held.put(summary(2, RUNNING), NOW, shown=asks())
        assert held.forget_old(NOW + 200)
        assert [need.job_id for need in held] == ["job0002"]

    def test_jobs_that_nobody_will_claim_are_one_item_for_all(self) -> None:
        held, job = Needs(), summary(1)
        held.put(job, NOW)
        stuck = need_of(Stuck(True, "tmux:claude\0codex", job, 9, NOW - 60, "nobody", ()))
        assert held.put_stuck([stuck]) == {job.job_id}
        assert held.put_stuck([stuck]) == set()
        assert (str(held[0].kind), held[0].jobs) == ("nobody serves", 9)
        assert not held.put(job._replace(last_seq=3), NOW), "it waits as before"
        held.load([job], NOW)
        assert len(held) == 1
        assert not held.forget_old(NOW + 1_000_000), "only what happens makes it go"
        assert held.put(job._replace(status=RUNNING), NOW)
        assert len(held) == 0
        other = stuck._replace(job_id="job0002")
        assert held.put_stuck([other]) == {"job0001", "job0002"}
        assert held.put_stuck([]) == {"job0002"}
        assert (len(held), sum(held.counts.values())) == (0, 0)

    def test_such_an_item_stays_put_aside_while_it_is_the_same_trouble(self) -> None:
        held = Needs()
        stuck = need_of(Stuck(False, "job0009", summary(1), 2, NOW, "cannot run", ()))
        held.put_stuck([stuck])
        assert held.put_aside("job0001")
        held.put_stuck([stuck._replace(job_id="job0002", jobs=1)])
        assert len(held) == 0, "its first job is another, the trouble is not"
        held.put_stuck([])
        held.put_stuck([stuck])
        assert len(held) == 1

    def test_a_job_that_needs_a_person_by_itself_says_that(self) -> None:
        held = Needs()
        job = summary(1, reason=Reason.QUOTA, not_before=NOW + 60)
        held.put(job, NOW)
        stuck = need_of(Stuck(False, "job0009", job, 2, NOW, "cannot run", ()))
        held.put_stuck([stuck])
        assert [str(need.kind) for need in held] == ["quota"]
        held.put(job._replace(reason=None, not_before=None), NOW)
        assert [str(need.kind) for need in held] == ["cannot run"]

    def test_is_the_same_however_it_came_about(self) -> None:
        chance = random.Random(8)
        jobs: dict[str, Summary] = {}
        states: dict[str, Shown] = {}
        held = Needs()
        for _ in range(1500):
            job = summary(chance.randrange(60), chance.choice(list(Status)))
            reason = chance.choice([None, *Reason]) if job.status is ERROR else None
            job = job._replace(reason=reason)
            if chance.random() < 0.1:
                jobs.pop(job.job_id, None)
                held.remove(job.job_id)
                continue
            state = chance.choice(list(ShownState))
            told = shown(state, f"w{chance.randrange(9)}", at=NOW - chance.randrange(99))
            jobs[job.job_id], states[job.job_id] = job, told
            held.put(job, NOW, shown=told)
        made = [needs(job, states[job_id], NOW) for job_id, job in jobs.items()]
        expected = sorted((need for need in made if need), key=lambda need: need.place)
        assert list(held) == expected
        assert sum(held.counts.values()) == len(expected)
        held.load(jobs.values(), NOW)
        assert list(held) == expected


def say(registry: Registry, job_id: str, words: str, **data: Any) -> None:
    sign = Sign(AgentState.WAITING, Channel.HOOK, "PermissionRequest", registry.clock.now(), words)
    registry.publish(job_id, "state", detail=words, data={**sign.to_dict(), **data})


def test_from_disk_come_the_words_of_questions_and_errors(
    registry: Registry, clock: FakeClock
) -> None:
    asking = running(registry, lease=WORKER, prompt="one")
    say(registry, asking.job_id, "May I write?", asked=4)
    bad = running(registry, lease=WORKER, prompt="two")
    registry.finish(bad.job_id, ERROR, attempt=1, reason=Reason.VALIDATION, detail="no out.txt")
    limited = running(registry, lease=WORKER, prompt="three")
    registry.requeue(
        limited.job_id, Reason.QUOTA, attempt=1, detail="resets at 5", not_before=clock.now() + 60
    )
    lost = running(registry, lease=LeaseTerms("worker-2", 5.0), prompt="four")
    add(registry, "nobody needs this", agent_session="other")
    clock.pass_time(10)
    found = attention(registry)
    assert [(need.job_id, str(need.kind), need.words) for need in found] == [
        (asking.job_id, "permission", "May I write?"),
        (lost.job_id, "lost", "the lease of worker-2 has expired"),
        (bad.job_id, "failed validation", "no out.txt"),
        (limited.job_id, "quota", "resets at 5"),
    ]
    assert found[0].question == "4"
    assert found[0].to_dict(clock.now())["age_sec"] == 10
    assert all(isinstance(need, Need) for need in found)
