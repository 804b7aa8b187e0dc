"""Two copies become one: which state of a task wins, in any order of meeting."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mam_core.dispatch import tasks
from mam_core.dispatch.layout import Sheet, Whole, compose, parse
from mam_core.dispatch.merge import merge, merge_sheets, merge_tasks, precedence
from mam_core.dispatch.tasks import Task, TaskStatus, local_stamp

T0 = 1_770_000_000.0
PENDING = Task(TaskStatus.PENDING, spec="S01-x.md", extra={})


def claimed(node: str, at: float = T0, before: Task = PENDING) -> Task:
    return tasks.claimed(before, node, 7, f"job{node}", at)


def running(node: str, at: float = T0, before: Task = PENDING) -> Task:
    return tasks.started(claimed(node, at, before), 8, "/log")


@st.composite
def task(draw: st.DrawFn) -> Task:
    """Any state that a task can get into, by ours or by a tool that knows no attempts."""
    node = draw(st.sampled_from(("a", "b", "c")))
    at = T0 + draw(st.integers(0, 3))
    state = PENDING
    for _ in range(draw(st.integers(0, 2))):
        state = tasks.failed(running(node, at, state), "exit")
    step = draw(st.sampled_from(("stay", "claimed", "running", "completed", "failed", "released")))
    if step != "stay":
        state = claimed(node, at, state)
    if step in ("running", "completed", "failed", "released"):
        state = tasks.started(state, 8, "/log")
    if step == "completed":
        state = tasks.completed(state, at + 5)
    elif step == "failed":
        state = tasks.failed(state, "exit")
    elif step == "released":
        state = tasks.released(state)
    if draw(st.booleans()):
        state = state._replace(attempt=None, job=None, released=None)
    return state


def core(task: Task) -> dict[str, Any]:
    return task._replace(extra={}).to_dict()


class TestOrder:
    @given(task(), task())
    def test_it_does_not_matter_who_asks(self, one: Task, other: Task) -> None:
        """Commutative."""
        assert merge(one, other) == merge(other, one)

    @given(task(), task())
    def test_twice_is_once(self, one: Task, other: Task) -> None:
        """Idempotent."""
        once = merge(one, other)
        assert merge(once, one) == merge(once, other) == merge(once, once) == once

    @given(task(), task(), task())
    def test_three_copies_meet_in_any_order(self, one: Task, two: Task, three: Task) -> None:
        """Associative."""
        ends = [core(merge(merge(a, b), c)) for a, b, c in permutations((one, two, three))]
        assert all(end == ends[0] for end in ends)

    @given(task(), task())
    def test_an_older_attempt_never_wins(self, one: Task, other: Task) -> None:
        assert merge(one, other).number == max(one.number, other.number)

    @given(task(), task())
    def test_nothing_that_was_claimed_goes_back_but_by_its_release(
        self, one: Task, other: Task
    ) -> None:
        """M24: a pending task wins only over one of the attempt that it gave up, or an older."""
        after = merge(one, other)
        for before in (one, other):
            if before.number and after.status is TaskStatus.PENDING:
                assert after.number >= before.number
                assert before.status is not TaskStatus.COMPLETED or after.number > before.number


class TestCases:
    def test_a_claim_survives_the_copy_that_has_not_heard_of_it(self) -> None:
        """M24."""
        for state in (claimed("a"), running("a"), tasks.completed(running("a"), T0)):
            assert merge(state, PENDING) == state

    def test_each_step_of_one_claim_follows_the_one_before(self) -> None:
        run = running("a")
        steps = [
            *(PENDING, claimed("a"), run, tasks.released(run), tasks.failed(run, "exit")),
            tasks.completed(run, T0 + 9),
        ]
        assert sorted(steps, key=precedence) == steps

    def test_a_retry_wins_over_the_failure_before_it(self) -> None:
        failed = tasks.failed(running("a"), "exit")
        again = claimed("b", T0 + 60, failed)
        assert merge(failed, again) == again

    def test_of_two_that_claimed_off_line_the_earlier_keeps_it(self) -> None:
        first, second = running("b", T0), running("a", T0 + 1)
        assert merge(first, second) == first
        assert merge(tasks.failed(second, "exit"), first) == first

    def test_work_that_is_done_stays_done(self) -> None:
        """Also where the claim that did it was not the first."""
        done = tasks.completed(running("a", T0 + 1), T0 + 9)
        assert merge(done, running("b", T0)) == done
        assert merge(done, tasks.released(running("a", T0 + 1))) == done

    def test_the_release_of_one_claim_does_not_undo_anothers(self) -> None:
        given_up = tasks.released(claimed("a", T0 + 1))
        assert merge(given_up, claimed("b", T0)) == claimed("b", T0)

    def test_a_tool_without_attempts_is_understood_by_its_times(self) -> None:
        def plain(status: str, at: float) -> Task:
            return Task(TaskStatus(status), node="mac2", started_at=local_stamp(at), extra={})

        assert merge(plain("failed", T0), plain("running", T0 + 60)).status == "running"
        assert merge(plain("running", T0), plain("failed", T0)).status == "failed"
        assert merge(plain("completed", T0), plain("running", T0 + 60)).status == "completed"

    def test_what_other_tools_wrote_on_either_side_is_kept(self) -> None:
        mine = claimed("a")._replace(extra={"note": "mine", "x": 1})
        its = PENDING._replace(extra={"note": "its", "y": 2})
        assert merge(mine, its).extra == {"note": "mine", "x": 1, "y": 2}

    def test_tasks_of_either_side_are_there_afterwards(self) -> None:
        merged = merge_tasks({"S01": claimed("a"), "S03": PENDING}, {"S02": PENDING})
        assert list(merged) == ["S02", "S01", "S03"]


NAMES = st.lists(st.sampled_from([f"S{n}" for n in range(12)]), unique=True)


@st.composite
def copy(draw: st.DrawFn) -> Whole:
    headers: list[dict[str, Any]] = [{}, {"specs_dir": "~/a"}, {"specs_dir": "~/b", "x": [1]}]
    return Whole(draw(st.sampled_from(headers)), {name: draw(task()) for name in draw(NAMES)})


class TestTexts:
    @given(copy(), copy())
    def test_texts_are_merged_as_their_tasks_are(self, ours: Whole, theirs: Whole) -> None:
        """The quick way compares bytes; it must say what the slow one says."""
        mine, its = Sheet(compose(ours)), Sheet(compose(theirs))
        both = merge_sheets(mine, its)
        merged = [parse(both.ours), parse(both.theirs)]
        expected = merge_tasks(parse(mine.text).tasks, parse(its.text).tasks)
        assert merged[0].tasks == merged[1].tasks == expected
        new = [
            sum(parse(side.text).tasks.get(name) != task for name, task in expected.items())
            for side in (mine, its)
        ]
        assert [both.pulled, both.pushed] == new
        for whole, before in zip(merged, (ours, theirs), strict=True):
            assert {**whole.header, **before.header} == whole.header

    @given(copy(), st.data())
    def test_copies_that_differ_in_a_few_tasks(self, ours: Whole, data: st.DataObject) -> None:
        """The usual case: the same tasks in the same order."""
        changed = {
            name: data.draw(task()) if data.draw(st.integers(0, 3)) == 0 else there
            for name, there in ours.tasks.items()
        }
        mine, its = Sheet(compose(ours)), Sheet(compose(Whole({}, changed)))
        text = merge_sheets(mine, its).theirs
        assert parse(text).tasks == merge_tasks(parse(mine.text).tasks, parse(its.text).tasks)
        assert Sheet(text).text == compose(parse(text))
