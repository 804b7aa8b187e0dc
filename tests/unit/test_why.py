"""Why a job is not running, from plain facts: what holds it, for how long, and what helps."""

from __future__ import annotations

import random
from math import inf
from pathlib import Path
from typing import Any

import pytest

from mam_core.board.why import (
    PATIENCE_SEC,
    BlockReasons,
    Evidence,
    Root,
    Served,
    Why,
    ago_in_words,
)
from mam_core.claims import Rule
from mam_core.clock import stamp
from mam_core.config import load
from mam_core.operations.evidence import Services, block_reasons, gather, held_back
from mam_core.operations.listing import listing, query
from mam_core.operations.why import why
from mam_core.presence import Presence
from mam_core.records import Reason, Status
from mam_core.registry import Registry
from mam_core.sessions import Session, SessionFolder
from mam_core.stores.base import Gate, GateKind, Gates
from mam_core.summaries import Summary
from tests.console.story import NOW, summary
from tests.support.clock import FakeClock
from tests.support.jobs import add, running
from tests.support.rows import each_row

PAIR = ("tmux:claude", "claude-code")
NOBODY = "nobody serves label tmux:claude with agent claude-code"
NOTHING = Evidence(Gates())


def job(name: str, *upstream: str, **changes: Any) -> Summary:
    made = summary(1, **{"parents": " ".join(upstream), **changes})
    return made._replace(job_id=name, head=f"Do {name}")


class Jobs:
    """Some jobs, and why each of them does not run."""

    def __init__(self, *jobs: Summary, evidence: Evidence = NOTHING) -> None:
        self.known = {job.job_id: job for job in jobs}
        self.reasons = BlockReasons(self.known.get, evidence)
        self.reasons.load(jobs)

    def why(self, name: str, now: float = NOW) -> Why:
        return self.reasons.why(self.known[name], now)

    def put(self, now: Summary) -> list[str]:
        was = self.known.get(now.job_id)
        self.known[now.job_id] = now
        return list(self.reasons.put(was, now))

    def stuck(self, now: float = NOW) -> list[tuple[bool, str, int]]:
        found = self.reasons.stuck(self.known.values(), now)
        return [(one.can_run, one.first.job_id, one.jobs) for one in found]


def said(told: Why) -> list[str]:
    return told.sentences(lambda help: help.key)


class TestHolds:
    def test_everything_is_told_and_what_only_a_person_ends_comes_first(self) -> None:
        jobs = [
            summary(1, Status.RUNNING, group="g"),
            summary(2, Status.ERROR),
            summary(3, Status.COMPLETED),
            summary(4, group="g", parents="job0001 job0002 job0003 lost", not_before=NOW + 60),
            summary(5),
        ]
        evidence = Evidence(
            Gates((Gate(GateKind.AGENT, "claude-code", stamp(NOW - 60), why="quota"),)),
            {"g": 1},
            {"g": 1},
            {PAIR: Served(False, ("codex",))},
        )
        told = Jobs(*jobs, evidence=evidence)
        found = told.why("job0004")
        assert [one.rule for one in found.holds] == [
            Rule.PARENT_FAILED,
            Rule.PARENT_GONE,
            Rule.AGENT_NOT_SERVED,
            Rule.PAUSED,
            Rule.PARENT_UNFINISHED,
            Rule.GROUP_FULL,
            Rule.NOT_YET,
        ]
        assert not found.can_run
        assert found.until is None
        assert said(found) == [
            'blocked: after job0002 "Write test number 2", which failed 30 s ago',
            "also: after lost, which is not in the registry",
            f"also: {NOBODY} (its workers serve codex)",
            f"also: agent claude-code is paused since {stamp(NOW - 60)}: quota",
            'also: after job0001 "Write test number 1", which is running',
            "also: group g is full: 1 of 1 running",
            f"also: not before {stamp(NOW + 60)}",
            "cannot run unless job0002 is retried: press r on job0002, or run mam retry job0002",
            "to resume: run mam resume --agent claude-code",
            "to run more of them at once: run mam group g --slots N",
            "to start a worker: run mam work --agent-session tmux:claude --agents claude-code",
        ]
        assert [one.rule for one in told.why("job0005").holds] == [
            Rule.AGENT_NOT_SERVED,
            Rule.PAUSED,
        ]
        assert told.why("job0001") == Why()

    def test_what_ends_by_itself_says_when(self) -> None:
        told = Jobs(
            job("a", not_before=NOW + 60),
            job("b", not_before=NOW + 60, reason=Reason.QUOTA),
            job("c", not_before=inf),
            evidence=Evidence(Gates((Gate(GateKind.ALL, "", stamp(NOW), until=stamp(NOW + 90)),))),
        )
        assert told.why("a").until == NOW + 90
        assert told.why("a", NOW + 70).until == NOW + 90
        assert said(told.why("b"))[0].startswith("blocked: everything is paused until")
        assert said(told.why("b"))[1].startswith(
            "also: agent claude-code met its usage limit; not before"
        )
        assert not told.why("c").can_run
        assert said(told.why("c"))[-1].endswith("mam edit c --clear not_before")

    def test_a_column_has_room_for_a_few_names(self) -> None:
        upstream = [job(f"u{at}", status=Status.RUNNING) for at in range(9)]
        told = Jobs(*upstream, job("x", *(one.job_id for one in upstream)))
        assert told.why("x").short == "after u0 running, u1 running, u2 running and 6 more"

    def test_a_column_begins_with_what_the_sentences_begin_with(self) -> None:
        told = Jobs(
            job("u", status=Status.RUNNING),
            job("x", "u"),
            evidence=Evidence(Gates((Gate(GateKind.ALL, "", stamp(NOW), why="lunch"),))),
        )
        assert said(told.why("x"))[0].startswith("blocked: everything is paused")
        assert told.why("x").short == "everything paused: lunch; after u running"

    def test_what_is_said_in_short_is_true_of_every_kind_at_random(self) -> None:
        """The cheap answer of a board and the whole one of a panel are the same answer."""
        chance = random.Random(3)
        for _ in range(300):
            jobs = [
                job(
                    f"n{at}",
                    *(f"n{chance.randrange(12)}" for _ in range(chance.randrange(3))),
                    status=chance.choice(list(Status)),
                    group=chance.choice([None, "g"]),
                    not_before=chance.choice([None, NOW - 1, NOW + 1, inf]),
                    agent=chance.choice(["codex", "gemini"]),
                )
                for at in range(8)
            ]
            closed = chance.choice([(), (Gate(GateKind.AGENT, "codex", stamp(NOW)),)])
            others = chance.choice([(), ("shell",)])
            served = {("tmux:claude", "gemini"): Served(False, others)}
            full = chance.choice([{}, {"g": 1}])
            told = Jobs(*jobs, evidence=Evidence(Gates(closed), {"g": 1}, full, served))
            for one in jobs:
                found = told.why(one.job_id)
                assert told.reasons.is_held(one, NOW) is bool(found.holds)
                root = told.reasons.root_of(one)
                pending = one.status is Status.PENDING
                assert found.can_run is (root is None and not (pending and one.not_before == inf))


class TestChains:
    def test_a_job_far_below_one_that_failed_can_never_run(self) -> None:
        told = Jobs(
            job("a", status=Status.ERROR),
            job("b", "a"),
            job("c", "b"),
            job("d", "c", "ok"),
            job("ok", status=Status.RUNNING),
            job("free", "ok"),
        )
        assert said(told.why("d"))[:1] == [
            'blocked: after c "Do c", which cannot run: a "Do a" failed 30 s ago'
        ]
        assert [told.reasons.root_of(told.known[name]) for name in "bcd"] == [Root("a", "b")] * 3
        assert told.why("free").can_run
        assert told.stuck() == [(False, "b", 3)]

    def test_a_retry_frees_them_and_nobody_has_to_look_at_every_job(self) -> None:
        told = Jobs(job("a", status=Status.CANCELLED), *(job(f"f{at}", "a") for at in range(1000)))
        assert told.stuck() == [(False, "f0", 1000)]
        assert told.put(job("a")) == [f"f{at}" for at in range(1000)]
        assert told.why("f7").can_run
        assert said(told.why("f7")) == ['blocked: after a "Do a", which is queued']
        assert told.stuck() == []
        told.put(job("a", status=Status.COMPLETED))
        assert told.why("f7").holds == ()

    def test_a_job_that_was_cleaned_away_and_a_circle_hold_for_good(self) -> None:
        told = Jobs(job("x", "gone"), job("y", "x"), job("p", "q"), job("q", "p"), job("z", "q"))
        assert said(told.why("y"))[-1] == (
            "cannot run unless x no longer comes after gone: run mam edit x --clear after"
        )
        assert not any(told.why(name).can_run for name in "xypqz")
        assert sum(jobs for _, _, jobs in told.stuck()) == 5

    def test_a_chain_may_be_longer_than_python_is_deep(self) -> None:
        told = Jobs(
            job("n0", status=Status.ERROR), *(job(f"n{at}", f"n{at - 1}") for at in range(1, 5000))
        )
        assert not told.why("n4999").can_run
        assert told.stuck() == [(False, "n1", 4999)]

    def test_its_moment_wakes_a_job(self) -> None:
        told = Jobs(job("a", not_before=NOW + 5), job("b", not_before=NOW + 9))
        assert list(told.reasons.due(NOW)) == []
        told.put(job("b", not_before=NOW + 6))
        assert list(told.reasons.due(NOW + 7)) == ["a", "b"]


class TestService:
    def test_nobody_serves_it_and_the_line_that_would(self) -> None:
        served = {
            PAIR: Served(False, missing="claude"),
            ("w", "codex"): Served(False, drained="oak"),
            ("tmux:idle", "codex"): Served(False, closed="oak"),
            ("tmux:claude", "gemini"): Served(False, ("claude-code",)),
            ("tmux:two words", "claude-code"): Served(False),
            ("tmux:claude", "keyed"): Served(False, unset=("A_KEY", "B_KEY")),
        }
        told = Jobs(
            job("a"),
            job("b", agent="codex", agent_session="w"),
            job("c", agent_session="elsewhere"),
            job("d", agent="gemini"),
            job("e", agent="keyed"),
            job("f", agent_session="tmux:two words"),
            job("g", agent="codex", agent_session="tmux:idle"),
            evidence=Evidence(Gates(), served=served),
        )
        assert said(told.why("a")) == [
            f"{NOBODY}; `claude` is not installed here",
            "install `claude`, then check: run mam doctor",
            "then, to start a session: press s, or run "
            "mam spawn --agent-session tmux:claude --agent claude-code",
        ]
        assert said(told.why("b")) == [
            "nobody serves label w with agent codex: host oak is drained",
            "to let it claim again: run mam node resume oak",
        ]
        assert said(told.why("d"))[1:] == [
            "to start a worker: run mam work --agent-session tmux:claude --agents gemini"
        ], "one label has one session"
        assert said(told.why("e")) == [
            "nobody serves label tmux:claude with agent keyed; A_KEY, B_KEY are not set here",
            "set A_KEY, B_KEY, then check: run mam doctor",
            "then, to start a session: press s, or run "
            "mam spawn --agent-session tmux:claude --agent keyed",
        ]
        assert said(told.why("f"))[1:] == [
            "to start a worker: run mam work --agent-session 'tmux:two words' --agents claude-code"
        ], "no session can have that name"
        assert said(told.why("g")) == [
            "nobody serves label tmux:idle with agent codex; host oak is drained",
            "to let it claim again: run mam node resume oak",
            "to start a session: press s, or run mam spawn --agent-session tmux:idle --agent codex",
        ], "a session of a drained host would claim nothing"
        assert (told.why("a").served, told.why("c").served) == (False, None)
        assert not told.reasons.is_held(told.known["a"], NOW), "queued, and said beside it"

    def test_an_agent_that_does_not_exist_is_not_started(self) -> None:
        pair = ("w", "codx")
        for served, words, helps in (
            (
                Served(False, is_unknown=True, near="codex"),
                "agent 'codx' is unknown (did you mean codex?)",
                ["to change its agent: press E on a, or run mam edit a --agent codex"],
            ),
            (
                Served(False, is_unknown=True),
                "agent 'codx' is unknown",
                ["to change its agent: press E on a, or run mam edit a --agent NAME"],
            ),
        ):
            jobs = job("a", agent="codx", agent_session="w")
            told = Jobs(jobs, evidence=Evidence(Gates(), served={pair: served}))
            assert said(told.why("a")) == [
                f"nobody serves label w with agent codx; {words}",
                *helps,
                "to see which agents exist: run mam doctor",
            ]

    def test_another_host_may_know_an_agent_or_have_its_program(self) -> None:
        """Of a registry that hosts share, this one's settings and programs are not all."""
        unknown = Served(False, is_unknown=True, near="codex", is_shared=True)
        absent = Served(False, missing="claude", is_shared=True)
        told = Jobs(
            job("a", agent="codx", agent_session="w"),
            job("b"),
            evidence=Evidence(Gates(), served={("w", "codx"): unknown, PAIR: absent}),
        )
        assert said(told.why("a")) == [
            "nobody serves label w with agent codx; agent 'codx' is unknown on this host "
            "(did you mean codex?)",
            "to change its agent: press E on a, or run mam edit a --agent codex",
            "to start a worker on a host that has agent codx: run "
            "mam work --agent-session w --agents codx",
        ]
        assert said(told.why("b"))[1:] == [
            "install `claude`, then check: run mam doctor",
            "then, or now on a host that has it, to start a session: press s, or run "
            "mam spawn --agent-session tmux:claude --agent claude-code",
        ]

    def test_it_needs_a_person_after_a_minute_and_one_item_stands_for_all(self) -> None:
        evidence = Evidence(Gates(), served={PAIR: Served(False)})
        jobs = [job(f"n{at}", updated_at=stamp(NOW - 10)) for at in range(500)]
        told = Jobs(*jobs, job("later", not_before=NOW + 900), evidence=evidence)
        assert told.stuck(NOW + PATIENCE_SEC - 11) == []
        assert told.stuck(NOW + PATIENCE_SEC - 10) == [(True, "n0", 500)]
        (one,) = told.reasons.stuck(told.known.values(), NOW + 100)
        assert one.words == f"{NOBODY}; 500 jobs wait"
        told.reasons.gather(Evidence(Gates(), served={PAIR: Served(True)}))
        assert told.stuck(NOW + 100) == []

    def test_the_minute_begins_when_it_could_have_been_claimed(self) -> None:
        evidence = Evidence(Gates(), served={PAIR: Served(False)})
        told = Jobs(
            job("a", status=Status.COMPLETED, ended_at=stamp(NOW - 5)),
            job("b", "a", updated_at=stamp(NOW - 900)),
            job("c", updated_at=stamp(NOW - 900), not_before=NOW - 5),
            evidence=evidence,
        )
        assert told.stuck(NOW + 50) == []
        assert told.stuck(NOW + 55) == [(True, "b", 2)]


@each_row(
    ("seconds", "words"),
    [
        (-3, "just now"),
        (40, "40 s ago"),
        (240, "4 min ago"),
        (3 * 3600, "3 h ago"),
        (5 * 86400, "5 days ago"),
    ],
)
def test_ages_are_words(seconds: float, words: str) -> None:
    assert ago_in_words(seconds) == words


class TestFromTheRegistry:
    def test_the_same_rules_hold_as_for_a_claim(self, registry: Registry) -> None:
        registry._slots = lambda: {"g": 1}
        first = running(registry, group="g").job_id
        ids = [
            add(registry, "one", group="g"),
            add(registry, "two", after=[first]),
            add(registry, "three", not_before="2030-01-01T00:00:00Z"),
            add(registry, "four"),
        ]
        registry.pause(GateKind.GROUP, "g", why="lunch")
        jobs, _ = listing(registry, query())
        blocks, now = block_reasons(registry, None, jobs), registry.clock.now()
        for one in jobs:
            if one.job_id in ids:
                rules = {hold.rule for hold in blocks.why(one, now).holds}
                assert rules == {refusal.rule for refusal in registry.refusals(one.job_id)}
                assert rules == {hold.rule for hold in why(registry, one.job_id).why.holds}
        assert held_back(registry, None, jobs) == set(ids[:3])

    def test_a_registry_that_is_not_there_holds_nobody_back(self, registry: Registry) -> None:
        assert gather(registry, None, (), ("g",)) == Evidence(Gates())


class TestWhoServes:
    """Sessions on record whose worker lives; real workers have their tests elsewhere."""

    @pytest.fixture
    def services(self, registry: Registry, place: Path) -> Services:
        return Services(registry, str(place), load())

    def session(self, registry: Registry, place: Path, name: str, agent: str, **more: str) -> None:
        known = {"name": name, "label": "tmux:a", "agent": agent, "mode": "exec", "workdir": "/"}
        made = {"settings_from": "/", "created_at": "t", "created_by": "ann", **known, **more}
        SessionFolder(str(place)).put(Session(**{"node": registry.node, **made}))  # type: ignore[arg-type]

    def test_a_session_whose_worker_lives(
        self, registry: Registry, place: Path, services: Services
    ) -> None:
        add(registry)
        self.session(registry, place, "a", "codex")
        self.session(registry, place, "b", "gemini")
        self.session(registry, place, "c", "aider", stopped_at="t")
        wanted = [("tmux:a", "codex"), ("tmux:a", "gemini"), ("tmux:a", "aider"), ("b", "codex")]
        with Presence.announce(SessionFolder(str(place)), "a"):
            found = services.of(wanted)
            assert [found[pair].by for pair in wanted] == [True, False, False, False]
            assert found["tmux:a", "gemini"].others == ("codex",)
            assert found["b", "codex"].others == ()
            drained = services.of(wanted, frozenset({registry.node}))
            assert [drained[pair].by for pair in wanted] == [False] * 4
            assert drained["tmux:a", "codex"].drained == registry.node
            assert drained["tmux:a", "gemini"].others == ("codex",)
            assert [drained[pair].closed for pair in wanted] == ["", *[registry.node] * 3]
            assert {one.closed for one in found.values()} == {""}
        SessionFolder(str(place)).remove("a")
        assert services.of(wanted)["tmux:a", "codex"].by is False

    def test_of_another_host_and_from_inside_an_attempt_nothing_is_known(
        self,
        registry: Registry,
        place: Path,
        services: Services,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        add(registry)
        self.session(registry, place, "far", "codex", node="elsewhere")
        wanted = [("tmux:a", "codex"), ("b", "codex"), ("submit:0", "codex")]
        found = services.of(wanted)
        assert [found[pair].by for pair in wanted[:2]] == [None, False]
        assert wanted[2] not in found, "whoever submitted it serves it"
        for variable in ("MAM_JOB_ID", "MAM_LIVE_AGENT"):
            with monkeypatch.context() as inside:
                inside.setenv(variable, "abc12345")
                assert services.of(wanted)["b", "codex"].by is None

    def test_what_an_agent_lacks_is_named(
        self,
        registry: Registry,
        place: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        add(registry)
        settings = place.parent / "mam.toml"
        settings.write_text('[agents.keyed]\ncommand = ["/bin/cat"]\nneeds = ["A_KEY"]\n')
        monkeypatch.delenv("A_KEY", raising=False)
        monkeypatch.setenv("PATH", "/nowhere")
        services = Services(registry, str(place), load(str(settings)))

        found = services.of([("x", "claude-code"), ("x", "keyed")])
        assert found["x", "claude-code"].missing == "claude"
        assert found["x", "keyed"].unset == ("A_KEY",)

    def test_an_agent_that_no_setting_has_is_unknown_and_the_nearest_is_named(
        self, registry: Registry, services: Services
    ) -> None:
        add(registry)
        pairs = [("x", "claude-cod"), ("x", "nothing like it"), ("x", "codex")]
        found = services.of(pairs)
        assert [(found[pair].is_unknown, found[pair].near) for pair in pairs] == [
            (True, "claude-code"),
            (True, ""),
            (False, ""),
        ]
        is_shared = registry.store.secret is not None
        assert {found[pair].is_shared for pair in pairs} == {is_shared}


def test_why_says_how_long_ago(registry: Registry, clock: FakeClock) -> None:
    first = add(registry, "Test the API")
    second = add(registry, "Ship it", after=[first])
    registry.claim("alpha")
    registry.finish(first, Status.ERROR, attempt=1, reason=Reason.EXIT)
    clock.pass_time(240)
    told = why(registry, second)
    assert told.sentences[0] == f'blocked: after {first} "Test the API", which failed 4 min ago'
    data = told.to_dict()
    assert (data["can_run"], data["claimable"], data["served"]) == (False, False, None)
    assert data["help"][0]["command"] == f"mam retry {first}"
    assert data["holds"][0]["since"] == stamp(clock.now() - 240)
