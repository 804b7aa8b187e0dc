"""The board as data: what is shown, in which order, and what sticks to a job."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mam_core.records import Status
from mam_core.summaries import Unreadable
from mam_tui.columns import BY_URGENCY, COLUMNS, sort_key
from mam_tui.filters import parse
from mam_tui.laying import Look
from mam_tui.model import Board, Effect, Order
from tests.console.story import NOW, summary


def board(*numbers: int, status: Status = Status.PENDING) -> Board:
    made = Board(sort_key, Order("id"))
    made.tick(NOW)
    made.load(summary(number, status) for number in numbers)
    return made


def shown(made: Board) -> list[str]:
    return [row.job_id for row in made.view()]


class TestCells:
    """What a line shows of a job that runs."""

    def cell(self, made: Board, name: str, ascii_only: bool = False) -> str:
        return COLUMNS[name].text(made.rows["job0001"], Look(NOW, ascii_only))

    def test_the_limit_that_ends_it_next_is_counted_down_to_and_marked(self) -> None:
        made = board(1, status=Status.RUNNING)
        for limit, left, shown in [
            ("wall", 600, "10m00"),
            ("idle", 42, "i42s"),
            ("idle", 600, "i10m"),
            ("tool", 1500, "t25m"),
            ("tool", -3, "t0s"),
            ("waiting", 3000, "50m00"),
        ]:
            made.hear("job0001", limit=limit, ends_at=NOW + left)
            assert self.cell(made, "left") == shown

    def test_memory_is_its_peak_and_what_it_takes_now(self) -> None:
        made = board(1, status=Status.RUNNING)
        assert (self.cell(made, "memory"), "memory" in made.used) == ("", False)
        made.hear("job0001", peak_memory=700 << 20, memory=300 << 20)
        assert (self.cell(made, "memory"), "memory" in made.used) == ("700M/300M", True)
        made.hear("job0001", peak_memory=3 << 29, memory=None)
        assert self.cell(made, "memory") == "1.5G"

    def test_a_guess_has_its_age_in_place_of_its_sign_and_is_dim(self) -> None:
        made = board(1, status=Status.RUNNING)
        made.hear("job0001", state="working", channel="hook", at=NOW - 10, limit="idle")
        row = made.rows["job0001"]
        assert (self.cell(made, "state"), row.is_doubtful(NOW)) == ("● working", False)
        assert row.is_doubtful(NOW + 200)
        made.hear("job0001", channel="screen", at=NOW - 180)
        assert (self.cell(made, "state"), row.is_doubtful(NOW)) == ("working 3m", True)
        assert self.cell(made, "state", ascii_only=True) == "working 3m"
        made.hear("job0001", heard_at=NOW)
        assert self.cell(made, "state") == "working <1m"
        made.hear("job0001", state="waiting")
        assert self.cell(made, "state") == "◆ waiting"


class TestOrder:
    def test_what_waits_for_a_person_stands_first(self) -> None:
        made = Board(sort_key, Order(BY_URGENCY))
        made.load(summary(number, status) for number, status in enumerate(Status))
        made.put(summary(9, Status.RUNNING))
        made.hear("job0009", state="waiting", words="May I?")
        assert shown(made)[0] == "job0009"

    def test_a_reversed_order_is_the_same_backwards(self) -> None:
        made = board(3, 1, 2)
        made.sort(Order("id", reverse=True))
        assert shown(made) == ["job0003", "job0002", "job0001"]
        assert [made[line].job_id for line in range(3)] == shown(made)
        assert made.line_of("job0003") == 0

    def test_every_column_can_be_sorted_by_also_where_nothing_stands_in_it(self) -> None:
        made = board(1, 2)
        made.put(Unreadable("job0003", "it is no JSON"))
        made.hear("job0002", cost=1.5, tokens=10, progress=0.5, heard_at=NOW)
        for name in COLUMNS:
            made.sort(Order(name))
            assert sorted(shown(made)) == ["job0001", "job0002", "job0003"]

    def test_a_change_that_moves_nothing_is_one_line(self) -> None:
        made = board(1, 2)
        assert made.hear("job0001", detail="reading") is Effect.LINE
        assert made.hear("job0001", detail="reading") is Effect.NONE

    def test_a_change_outside_the_view_is_nothing(self) -> None:
        made = board(1, 2)
        made.narrow(parse("id:job0002"))
        assert made.put(summary(1, Status.RUNNING)) is Effect.NONE


class TestWhatSticks:
    def test_the_cursor_stays_on_its_job_when_others_come_before_it(self) -> None:
        made = board(5, 6)
        made.move_to(1)
        made.put(summary(1))
        assert made.cursor == "job0006"
        assert made.line_of(made.cursor) == 2

    def test_the_cursor_goes_to_the_neighbour_when_its_job_is_gone(self) -> None:
        made = board(1, 2, 3)
        made.move_to(1)
        made.remove("job0002")
        assert made.cursor == "job0003"
        made.remove("job0003")
        assert made.cursor == "job0001"
        made.remove("job0001")
        assert made.cursor is None

    def test_marks_survive_a_filter_and_go_with_their_job(self) -> None:
        made = board(1, 2, 3)
        made.toggle_mark("job0001")
        made.toggle_mark("job0003")
        made.narrow(parse("id:job0003"))
        assert made.chosen() == ["job0003", "job0001"]
        made.remove("job0001")
        assert made.chosen() == ["job0003"]

    def test_news_of_an_older_attempt_are_forgotten(self) -> None:
        made = board(1, status=Status.RUNNING)
        made.hear("job0001", state="waiting", words="May I?", detail="old")
        made.put(summary(1, Status.RUNNING, attempt=2))
        row = made.rows["job0001"]
        assert (row.word, row.live.words, row.live.detail) == ("running", "", "")

    def test_a_cancelling_job_says_so_whatever_its_agent_does(self) -> None:
        made = board()
        made.put(summary(1, Status.RUNNING, cancel_requested_at="2027-01-15T08:00:00Z"))
        made.hear("job0001", state="working")
        assert made.rows["job0001"].word == "cancelling"


_NUMBERS = st.integers(0, 12)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _NUMBERS, st.sampled_from(Status), st.integers(1, 3)),
        st.tuples(st.just("remove"), _NUMBERS),
        st.tuples(st.just("hear"), _NUMBERS, st.sampled_from(["working", "waiting", "idle"])),
        st.tuples(st.just("sort"), st.sampled_from(sorted(COLUMNS)), st.booleans()),
        st.tuples(st.just("narrow"), st.sampled_from(["", "status:running", "attempt:>1", "-1"])),
        st.tuples(st.just("move"), _NUMBERS),
    ),
    max_size=60,
)


@settings(max_examples=120, deadline=None)
@given(_STEPS)
def test_whatever_happens_the_view_is_what_sorting_everything_would_give(
    steps: list[tuple[Any, ...]],
) -> None:
    made = board()
    for step in steps:
        match step:
            case ("put", number, status, attempt):
                made.put(summary(number, status, attempt=attempt))
            case ("remove", number):
                made.remove(f"job{number:04}")
            case ("hear", number, state):
                made.hear(f"job{number:04}", state=state)
            case ("sort", name, reverse):
                made.sort(Order(name, reverse))
            case ("narrow", text):
                made.narrow(parse(text))
            case ("move", line):
                made.move_to(line)
        seen, counts, cursor = shown(made), +made.counts, made.cursor
        assert [made.line_of(job_id) for job_id in seen] == list(range(len(seen)))
        assert (cursor in seen) if seen else cursor is None
        made.rearrange()
        made._recount()
        assert (shown(made), +made.counts) == (seen, counts)
