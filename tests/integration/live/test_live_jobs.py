"""A live agent in a pane takes job after job: on a real tmux server, with a stand-in agent."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from mam_core.messages import Message, MessageKind, Stage
from mam_core.operations.answer import open_questions
from mam_core.records import Reason, Status
from mam_core.work.sweep import Sweep
from tests.support.live import LiveShop, live_shop
from tests.support.patience import eventually

HOSTILE = "say ok\n; rm -rf x\nEnter\n$(touch pwned)\x1b[201~\x1b]0;own\x07 HOSTILE-WORD\n-- C-c\n"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[LiveShop]:
    with live_shop(tmp_path) as made:
        yield made


def supervisor(shop: LiveShop, job_id: str, attempt: int = 1) -> int:
    mark = json.loads((shop.attempt_folder(job_id, attempt) / "process.json").read_text())
    return int(mark["supervisor"]["pid"])


def is_part(log: Path, seen: Path) -> bool:
    """What the pane shows is written down by a process of its own, which may be behind."""
    return log.read_bytes() in seen.read_bytes()


class TestJobAfterJob:
    def test_one_agent_takes_one_job_after_the_other(self, shop: LiveShop) -> None:
        """H5, H6: only our line reaches the pane; every byte of the agent is shown and kept."""
        shop.stand_in()
        shop.open()
        seen = shop.folder / "seen"
        shop.tmux("pipe-pane", "-O", "-t", "live", f"exec cat > {seen}")
        first = shop.order("say first words", "write made.txt yes", expected_artifacts=["made.txt"])
        hostile = shop.add("stand-in", HOSTILE)
        assert shop.ended(first).status is Status.COMPLETED
        assert shop.ended(hostile).status is Status.COMPLETED
        assert supervisor(shop, first) == supervisor(shop, hostile), "the same agent"
        assert shop.stages(first) == shop.stages(hostile) == ["typed", "submitted", "accepted"]
        assert [one for one, _ in shop.states(hostile)][-2:] == ["working", "idle"]

        screen = shop.until_shown("pastes 2")
        assert f"prompt 2: Job {hostile}" in screen
        assert "attempt 1" not in screen, "nothing of ours is printed over the agent"
        logs = [shop.attempt_folder(one) / "output.log" for one in (first, hostile)]
        assert b"first words" in logs[0].read_bytes()
        for log in logs:
            eventually(partial(is_part, log, seen), "each byte is in the pane, too")
        assert b"HOSTILE-WORD" not in seen.read_bytes()
        assert not (shop.workdir / "pwned").exists()
        assert not (shop.attempt_folder(hostile) / "prompt").exists()

        shop.tmux("send-keys", "-t", "live", "-l", "by hand")
        shop.tmux("send-keys", "-t", "live", "Enter")
        shop.until_shown("you said: by hand")
        shop.tmux("resize-window", "-t", "live", "-x", "120", "-y", "30")
        shop.until_shown("size 30x120")
        os.kill(shop.worker_pid, signal.SIGINT)
        shop.until_shown("2 attempts, 0 not completed")
        shop.until_nobody_lives()

    def test_an_agent_that_is_slow_to_accept_enter_gets_it_again_and_the_text_never(
        self, shop: LiveShop
    ) -> None:
        """Issue: what it is sent too soon after the paste is lost."""
        shop.stand_in("--lose-enters", "1")
        job_id = shop.order("say through")
        shop.open()
        assert shop.ended(job_id).status is Status.COMPLETED
        assert "pastes 1" in shop.until_shown("prompt 1")
        last = shop.audit(job_id, "prompt_delivery")[-1]
        assert (last["stage"], last["enters"]) == ("accepted", 2)

    @pytest.mark.release
    def test_another_folder_gets_a_fresh_agent_and_a_report_ends_a_job(
        self, shop: LiveShop
    ) -> None:
        """Decision 15: the agent's own report, by the very command that it was told."""
        shop.stand_in("--lose-enters", "2")
        other = shop.folder / "other"
        other.mkdir()
        lost = shop.order("publish completed", "work 0.2")
        moved = shop.order("publish error", workdir=str(other))
        shop.open()
        assert shop.ended(lost).detail == "by hand"
        ended = shop.ended(moved)
        assert (ended.status, ended.reason) == (Status.ERROR, Reason.AGENT)
        assert supervisor(shop, lost) != supervisor(shop, moved)
        assert "pastes 1" in shop.until_shown("prompt 1")
        last = shop.audit(lost, "prompt_delivery")[-1]
        assert (last["stage"], last["enters"]) == ("accepted", 3), "two Enters were lost"

    def test_an_agent_that_says_nothing_of_itself_ends_by_its_report_only(
        self, shop: LiveShop
    ) -> None:
        """At last the screen shows that the prompt was taken; it alone ends no job."""
        shop.stand_in("--mute", stream="plain")
        job_id = shop.order("until go", "publish completed")
        shop.open()
        eventually(lambda: "accepted" in shop.stages(job_id), "it was taken")
        shop.let_go()
        assert shop.ended(job_id).detail == "by hand"
        assert shop.audit(job_id, "prompt_delivery")[-1]["shown"].startswith("screen: ")

    def test_no_process_is_started_to_look_at_the_screen(self, shop: LiveShop) -> None:
        """A mute agent's screen is looked at all the time, by one client that lasts."""
        shop.stand_in("--mute", stream="plain")
        started = shop.counted_tmux()
        job_id = shop.order("until go", "publish completed")
        shop.open()
        shop.until_state(job_id, "working")
        eventually(lambda: "accepted" in shop.stages(job_id), "it was taken")
        shop.let_go()
        assert shop.ended(job_id).status is Status.COMPLETED
        lines = started.read_text().splitlines()
        assert sum("attach-session" in line for line in lines) == 1
        assert not any("capture-pane" in line for line in lines)
        acts = ("-V", "attach-session", "load-buffer", "if-shell", "set-option")
        assert [line for line in lines if not any(act in line for act in acts)] == []

    def test_an_agent_that_nobody_knows_gets_one_enter_and_a_person_is_told(
        self, shop: LiveShop
    ) -> None:
        """Neither rules nor a channel: what it does after the first Enter, nobody can see."""
        shop.agent("unknown", "interactive", "--mute", mode="interactive")
        job_id = shop.add("unknown", "until go\npublish completed\n")
        shop.open(agent="unknown")
        shop.until_state(job_id, "waiting", "nothing shows whether it was taken")
        refused = shop.send(job_id, MessageKind.SAY, "and then rest")
        assert refused.stage is Stage.REFUSED
        assert "the prompt of its job is not taken yet" in refused.words
        shop.let_go()
        assert shop.ended(job_id).detail == "by hand"
        lines = shop.audit(job_id, "prompt_delivery")
        assert [line["stage"] for line in lines] == ["typed", "submitted", "unsubmitted"]
        assert lines[-1]["enters"] == 1


class TestTalking:
    def test_a_first_dialog_is_named_and_answered_by_a_person_only(self, shop: LiveShop) -> None:
        shop.stand_in("--first-dialog")
        job_id = shop.order("say through")
        shop.open()
        shop.until_state(job_id, "waiting", "trust: Trust this folder?")
        eventually(lambda: "permission_required" in shop.names(job_id), "it is told")
        asked = [one for one in shop.told(job_id) if one["event"] == "permission_required"]
        assert "Trust this folder?" in asked[0]["detail"]
        assert "pastes 0" in shop.screen(), "nothing is typed into a dialog"

        refused = shop.send(job_id, MessageKind.ANSWER, "perhaps")
        assert refused.stage is Stage.REFUSED
        assert refused.words == "it offers: 1 Yes, 2 No"
        assert shop.send(job_id, MessageKind.ANSWER, "y").stage is Stage.ACCEPTED
        assert shop.ended(job_id).status is Status.COMPLETED

    def test_questions_esc_and_words_on_the_way(self, shop: LiveShop) -> None:
        """An interrupted turn is no end: the job waits for that person."""
        shop.stand_in()
        job_id = shop.order("work 1.2", "ask May I touch it?", "work 60")
        shop.open()
        shop.until_state(job_id, "waiting")
        assert shop.send(job_id, MessageKind.ANSWER, "n").stage is Stage.ACCEPTED
        shop.until_shown("answered 2")
        assert shop.send(job_id, MessageKind.INTERRUPT).stage is Stage.ACCEPTED
        shop.until_state(job_id, "idle", "interrupted")
        assert shop.job(job_id).status is Status.RUNNING

        said = shop.send(job_id, MessageKind.SAY, "then end it; Enter")
        stages = [Stage.TYPED, Stage.SUBMITTED, Stage.ACCEPTED]
        # The line follows the record, which was what we waited for.
        eventually(lambda: shop.receipts(job_id, said) == stages, "all of it is in its history")
        assert shop.ended(job_id).status is Status.COMPLETED
        shop.until_shown("you said: then end it; Enter")

    def test_a_yes_reaches_the_question_that_was_meant_and_no_other(self, shop: LiveShop) -> None:
        """Two people say yes to one question; the one that follows it waits for its own."""
        shop.stand_in()
        job_id = shop.order("ask May I look?", "ask May I erase it?")
        shop.open()
        shop.until_state(job_id, "waiting", "look")
        seen = open_questions(shop.registry, job_id)[0]

        def yes(to: str) -> Message:
            return shop.registry.send(job_id, MessageKind.ANSWER, "y", to=to)

        receipts = [shop.until_receipt(job_id, one) for one in [yes(seen.handle), yes(seen.handle)]]
        assert [one.stage for one in receipts] == [Stage.ACCEPTED, Stage.REFUSED]
        late = shop.until_receipt(job_id, yes(seen.handle))
        assert (late.stage, late.words) == (Stage.REFUSED, "the question is no longer open")
        shop.until_state(job_id, "waiting", "erase")  # it is told a moment after it is drawn
        following = open_questions(shop.registry, job_id)[0]
        assert following.words == "May I erase it?"
        assert not following.is_meant_by(seen.handle)
        assert shop.until_receipt(job_id, yes(following.handle)).stage is Stage.ACCEPTED
        assert shop.ended(job_id).status is Status.COMPLETED

    def test_words_for_an_agent_at_work_are_taken_when_they_left_its_box(
        self, shop: LiveShop
    ) -> None:
        """That it works shows nothing: it did so before. Enter is pressed until the text goes."""
        shop.stand_in()
        job_id = shop.order("until go")
        shop.open()
        shop.until_state(job_id, "working")
        said = shop.registry.send(job_id, MessageKind.SAY, "and then rest")
        shop.until_submitted(job_id, said)
        shop.let_go()
        assert shop.until_receipt(job_id, said).stage is Stage.ACCEPTED
        shop.until_shown("you said: and then rest")
        assert shop.ended(job_id).status is Status.COMPLETED

    @pytest.mark.parametrize("options", [(), ("--no-paste",)])
    def test_two_lines_are_one_text_or_none(self, shop: LiveShop, options: tuple[str, ...]) -> None:
        """Without a paste that is one, each line end would send off what stands before it."""
        shop.stand_in(*options)
        job_id = shop.order("until go")
        shop.open()
        shop.until_state(job_id, "working")
        if options:
            refused = shop.send(job_id, MessageKind.SAY, "one thing\nand another")
            assert refused.stage is Stage.REFUSED
            assert "say it in one line" in refused.words
        words = "one thing" if options else "one thing\nand another"
        said = shop.registry.send(job_id, MessageKind.SAY, words)
        shop.until_submitted(job_id, said)
        shop.let_go()
        assert shop.until_receipt(job_id, said).stage is Stage.ACCEPTED
        assert shop.ended(job_id).status is Status.COMPLETED
        assert "prompt 2: one thing" in shop.screen()
        assert "prompt 3" not in shop.screen()


class TestEnds:
    def test_a_dead_a_failed_and_a_cancelled_job_and_the_next_one(self, shop: LiveShop) -> None:
        """Cancel ends the whole tree; whoever comes next gets a new agent."""
        shop.stand_in()
        dies = shop.order("die 7")
        fails = shop.order("fail usage of the model")
        lives = shop.order("child", "work 600")
        after = shop.order("say done")
        shop.open()
        ended = shop.ended(dies)
        assert (ended.status, ended.reason) == (Status.ERROR, Reason.EXIT)
        assert "code 7" in (ended.detail or "")
        ended = shop.ended(fails)
        assert (ended.status, ended.reason) == (Status.ERROR, Reason.AGENT)
        shop.until_state(lives, "working")
        eventually(lambda: len(shop.survivors()) >= 2, "the agent and its child live")
        before = set(shop.survivors())
        shop.registry.request_cancel(lives)
        assert shop.ended(lives).status is Status.CANCELLED
        assert not any(psutil.pid_exists(pid) for pid in before)
        assert shop.ended(after).status is Status.COMPLETED
        assert supervisor(shop, fails) == supervisor(shop, lives) != supervisor(shop, after)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_a_worker_that_goes_leaves_nobody_and_its_job_comes_back(
        self, shop: LiveShop, number: signal.Signals
    ) -> None:
        """Killed, the sweep finds its job; asked to hand back, it does so itself."""
        shop.stand_in()
        job_id = shop.order("child", "work 600")
        shop.open()
        shop.until_state(job_id, "working")
        eventually(lambda: len(shop.survivors()) >= 2, "the agent and its child live")
        os.kill(shop.worker_pid, number)
        shop.until_nobody_lives()
        sweep = Sweep(shop.registry, grace_sec=0.5)

        def is_back() -> bool:
            if number == signal.SIGKILL:
                sweep.once()
            return shop.job(job_id).status is Status.PENDING

        eventually(is_back, "the sweep brings it back")

    def test_an_agent_that_cannot_start_ends_its_job(self, shop: LiveShop) -> None:
        """H12: an error, not an eternal running."""
        shop.stand_in("--exit", "3")
        shop.agent("nowhere", "/nowhere/agent", mode="interactive", stream="codex-json")
        job_id = shop.order("say nothing")
        missing = shop.add("nowhere")
        shop.open("--agents", "nowhere")
        ended = shop.ended(job_id)
        assert (ended.status, ended.reason) == (Status.ERROR, Reason.EXIT)
        assert "this one ends at once" in (ended.detail or "")
        assert shop.ended(missing).reason is Reason.NOT_FOUND


class TestWhereItCannotBe:
    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["--agents", "stand-in"], "needs a pane of tmux"),
            (["--agents", "stand-in", "--slots", "2"], "say --slots 1"),
            (["--agents", "stand-in,shell"], "give each a worker of its own"),
        ],
    )
    def test_it_is_refused_with_a_sentence(
        self, shop: LiveShop, words: list[str], says: str
    ) -> None:
        shop.stand_in()
        environ = {k: v for k, v in os.environ.items() if not k.startswith("TMUX")}
        with shop.mam_work(*words, environ=environ) as watched:
            assert watched.code() != 0
            assert watched.says(says)
