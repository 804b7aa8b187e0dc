"""The view of dependencies: a tree that is read downwards, and what each job waits for."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from mam_core.board.why import BlockReasons
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.safe_text import safe
from mam_core.stores.base import GateKind
from mam_core.summaries import Summary
from mam_tui.graph.lines import Drawing, Folds, GraphLine, Kind, drawing, lines_of
from mam_tui.graph.text import Facts, cells_of, in_tree
from mam_tui.rows import Row
from mam_tui.screens.graph import GraphScreen
from mam_tui.screens.job import JobScreen
from mam_tui.screens.notice import Notice
from tests.console.detail_story import HOSTILE, WORKER
from tests.console.staging import Opened, add, opened
from tests.console.story import NOW, summary

# -- lines ---------------------------------------------------------------------------------------


def job(name: str, *parents: str, order: int = 1, **changes: Any) -> Summary:
    return summary(order, parents=" ".join(parents), **changes)._replace(job_id=name)


def drawn(jobs: Iterable[Summary], groups: Iterable[str] = ()) -> Drawing:
    return drawing(list(jobs), lambda one: one.not_before is not None, frozenset(groups))


def text(lines: Iterable[GraphLine], room: int = 40, step: int = 3) -> list[str]:
    """As it is drawn, with what is folded and what heads a part in words."""
    return [
        in_tree(line, line.name, room, step, ascii_only=False)
        if line.kind is Kind.NODE
        else f"{line.kind}: {line.words}"
        for line in lines
    ]


def whole(told: Drawing) -> list[GraphLine]:
    return lines_of(told, Folds(shows_finished=True), None)


DIAMOND = [job("a"), job("b", "a"), job("c", "a"), job("d", "b", "c"), job("e", "b")]


def test_a_job_stands_once_below_all_of_its_parents() -> None:
    lines = whole(drawn(DIAMOND))
    assert text(lines) == [
        "head: waiting: 1 tree, 5 jobs",
        "a",
        "├─ b",
        "│  └─ e",
        "└─ c",
        "   └─ d",
    ]
    assert {line.name: (line.parent, line.others) for line in lines if line.name == "d"} == {
        "d": ("c", ("b",))
    }
    assert text(lines, step=2)[3] == "│ └ e"


def test_a_long_chain_says_how_deep_it_is() -> None:
    chain = [job(f"n{at}", *([f"n{at - 1}"] if at else [])) for at in range(300)]
    lines = text(whole(drawn(chain)), room=12)
    assert lines[1:5] == ["n0", "└─ n1", "   └─ n2", "      └─ n3"]
    assert lines[12] == "…11   └─ n11"
    assert lines[-1] == "…299 └─ n299"
    assert all(len(line) <= 12 for line in lines[1:])


def test_what_moves_comes_first_and_what_is_over_is_folded() -> None:
    done, runs = Status.COMPLETED, Status.RUNNING
    told = drawn(
        [
            job("old", order=1, status=done),
            job("old2", "old", order=2, status=Status.ERROR),
            job("new", order=3, status=done),
            job("new2", "new", order=4, status=done),
            job("w", "gone", order=5),
            job("r", order=6, status=runs),
            job("r2", "r", order=7),
            job("later", order=8, not_before=NOW + 60),
            job("free", order=9),
        ]
    )
    seen = text(lines_of(told, Folds(), None))
    assert seen == [
        "head: running: 1 tree, 2 jobs",
        "r",
        "└─ r2",
        "head: waiting: 1 tree, 2 jobs",
        "gone",
        "└─ w",
        "head: finished: 2 trees, 4 jobs",
        "fold: 2 jobs: 2 completed",
        "fold: 2 jobs: 1 completed, 1 error",
        "head: held back: 1 job that comes after none",
        "later",
    ]
    one_open = lines_of(told, Folds(turned=frozenset({"old", "r"})), None)
    assert text(one_open)[1] == "fold: 2 jobs: 1 pending, 1 running"
    assert text(one_open)[-4:-2] == ["old", "└─ old2"]
    found = lines_of(told, Folds(shows_finished=True), {"new2", "later"})
    assert text(found)[1:3] == ["new", "└─ new2"]
    assert text(found)[-1] == "later"
    assert len(found) == 5


def test_a_group_is_one_line_and_a_circle_is_still_drawn() -> None:
    jobs = [job("a"), job("b", "a", group="g"), job("c", "b", group="g"), job("d", "c")]
    told = drawn([*jobs, job("alone", group="g")], {"g"})
    assert text(whole(told)) == ["head: waiting: 1 tree, 4 jobs", "a", "└─ [g]", "   └─ d"]
    assert set(told.trees[0].jobs) == {"a", "b", "c", "d"}
    circle = whole(drawn([job("x", "y"), job("y", "x"), job("z", "y")]))
    assert [line.name for line in circle[1:]] == ["x", "y", "z"]


def test_any_forest_is_read_downwards() -> None:
    chance = random.Random(5)
    for _ in range(30):
        jobs = []
        for at in range(chance.randrange(1, 50)):
            parents = sorted({f"n{chance.randrange(at)}" for _ in range(chance.randrange(4)) if at})
            jobs.append(job(f"n{at}", *parents, order=at + 1))
        told = drawn(jobs)
        places = {line.name: at for at, line in enumerate(whole(told))}
        assert places.keys() - {"WAITING"} == told.graph.nodes.keys()
        for node in told.graph.nodes.values():
            assert all(places[parent] < places[node.name] for parent in node.parents)


def test_the_words_name_what_a_job_waits_for() -> None:
    jobs = [
        job("bad", status=Status.ERROR),
        job("ok", status=Status.COMPLETED),
        job("runs", status=Status.RUNNING),
        job("x", "runs", "ok", "bad", "lost", not_before=NOW + 90_000, group="g"),
    ]
    told = drawn(jobs)
    reasons = BlockReasons({one.job_id: one for one in jobs}.get)
    facts = Facts({one.job_id: Row(one) for one in jobs}, told.graph, reasons, NOW)
    words = facts.why("x").short
    assert words.startswith("after bad failed, lost gone, runs running; not before 20")
    line = next(line for line in whole(told) if line.name == "x")
    cells = cells_of(line, facts, 30, 3, ascii_only=False)
    assert cells.face is not None
    assert cells.face.word == "blocked"
    assert cells.words.startswith("after bad failed")
    assert "— +1: ok —" in cells.words
    gone = next(line for line in whole(told) if line.name == "lost")
    assert cells_of(gone, facts, 30, 3, ascii_only=True).job_id == ""


# -- the view ------------------------------------------------------------------------------------


def seen(
    folder: Path, size: tuple[int, int] = (120, 30), **more: Any
) -> AbstractAsyncContextManager[Opened]:
    return opened(str(folder / "jobs"), size, **more)


async def the_graph(sight: Opened) -> GraphScreen:
    await sight.press("8")
    view: GraphScreen = await sight.until_on(GraphScreen)
    await sight.until(lambda: view.times_made, "the graph is made")
    await sight.pilot.pause()
    return view


async def test_without_dependencies_it_says_how_they_are_made(
    tmp_path: Path, registry: Registry
) -> None:
    add(registry, "alone")
    async with seen(tmp_path, (60, 20)) as sight:
        await the_graph(sight)
        await sight.until_seen("no job comes after another one", "mam register --after ID")
        await sight.press("enter", "z", "left_square_bracket", "c")
        await sight.until_told("there is no job here")
        await sight.pilot.resize_terminal(20, 5)
        await sight.pilot.pause()
        await sight.press("escape")
        await sight.until(lambda: sight.app.screen is sight.app.board, "back on the board")


async def test_it_follows_what_happens(tmp_path: Path, registry: Registry) -> None:
    """Reasons in words, one line for one change, a new link, and back to the board."""
    first = add(registry, "Plan it")
    registry.claim("tmux:c", lease=WORKER)
    second = add(registry, "Build it", after=[first])
    third = add(registry, "Ship it", after=[first, second])
    held = add(registry, "Paused one", agent="gemini")
    registry.pause(GateKind.AGENT, "gemini", why="lunch")
    async with seen(tmp_path) as sight:
        view = await the_graph(sight)
        table = view.table
        await sight.until_seen(f"after {first} ", "held back: 1 job", "paused", "lunch", held)
        lines = [line.name for line in table.lines if line.kind is Kind.NODE]
        assert lines == [first, second, third, held]

        table.go_to(f"{Kind.NODE} {second}")
        await sight.until_seen(f'after {first} "Plan it", which is running')
        assert sight.desk.board.cursor == second
        await sight.press("h")
        assert sight.desk.board.cursor == first
        await sight.press("right_square_bracket", "l")
        assert sight.desk.board.cursor == third

        made, before = view.times_made, table.lines_drawn
        registry.finish(first, Status.COMPLETED, attempt=1)
        await sight.until_seen("completed", f"after {second} queued")
        await sight.until(lambda: view.times_made > made, "it was made anew")
        assert table.lines_drawn - before < 3 * len(table.lines)

        fourth = add(registry, "Tell it", after=[third])
        await sight.until(lambda: table.line_of(f"{Kind.NODE} {fourth}"), "the new one is drawn")
        assert sight.desk.board.cursor == third
        await hidden_is_idle(sight, view, registry, fourth)
        await sight.press("enter")
        await sight.until_on(JobScreen)
        await sight.press("escape")
        await sight.until_on(GraphScreen)
        await sight.press("escape")
        await sight.until(lambda: sight.app.screen is sight.app.board, "back on the board")
        assert sight.desk.board.cursor == third


async def hidden_is_idle(sight: Opened, view: GraphScreen, registry: Registry, parent: str) -> None:
    """While something else is on the screen nothing is made; back again, what came is there."""
    sight.app.push_screen(Notice(["something else"]))
    await sight.until(lambda: sight.app.screen is not view, "another screen is on top")
    await sight.until(lambda: not view.state.is_being_made, "what was begun is over")
    await sight.pilot.pause()
    made = view.times_made
    late = add(registry, "Late", after=[parent])
    await sight.until(lambda: late in sight.desk.board.rows, "the board knows it")
    await sight.pilot.pause(0.1)
    assert view.times_made == made
    await sight.press("enter")
    await sight.until(lambda: view.table.line_of(f"{Kind.NODE} {late}"), "it is drawn now")


async def test_folds_filters_and_groups(tmp_path: Path, registry: Registry) -> None:
    old = add(registry, "Old one")
    after = add(registry, "After the old one", after=[old])
    for job_id in (old, after):
        registry.set_status(job_id, Status.COMPLETED)
    root = add(registry, f"Root {HOSTILE}")
    inner = add(registry, "Inner", after=[root], group="team")
    add(registry, "Leaf of the team", after=[inner], group="team")
    last = add(registry, "Last of all", after=[inner])
    async with seen(tmp_path, (100, 30), ascii_only=True) as sight:
        view = await the_graph(sight)
        table = view.table
        await sight.until_seen("finished: 1 tree", f"> {old}", "2 jobs: 2 completed")
        assert sight.text().replace("\n", "").isascii()
        assert safe(sight.text(), keep="\n") == sight.text()

        await sight.press("G", "enter")
        await sight.until_seen("After the old one")
        await sight.press("z")
        await sight.until(lambda: table.line_of(f"{Kind.FOLD} {old}"), "it is folded again")
        await sight.press("f")
        await sight.until_seen("After the old one")

        table.go_to(f"{Kind.NODE} {inner}")
        await sight.press("o")
        await sight.until_seen("> [team]", "group of 2 pending")
        await sight.until(
            lambda: table.row and table.row.line.name == "[team]", "it has the cursor"
        )
        await sight.press("enter")
        await sight.until_seen("Leaf of the team")

        await sight.press("slash", *"last", "enter")
        await sight.until(lambda: view.state.filter.text == "last", "it is narrowed")
        assert table.lines[1].name == root
        assert "After the old one" not in sight.text()
        assert table.row_at(table.line_of(f"{Kind.NODE} {root}") or 0).is_aside
        assert not table.row_at(table.line_of(f"{Kind.NODE} {last}") or 0).is_aside
        await sight.press("slash", *"zzz", "enter")
        await sight.until_seen("no job here fits")
        await sight.press("escape")
        await sight.until_seen("After the old one")
