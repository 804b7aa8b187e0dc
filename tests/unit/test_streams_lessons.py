"""What the recordings taught: where an agent's own word or its exit code would mislead."""

from __future__ import annotations

import pytest

from mam_core.agents.streams import Kind, StreamFormat, Tokens, ToolState
from mam_core.agents.streams.opencode import HOPELESS
from mam_core.agents.streams.plain import READ_AT_ONCE
from mam_core.records import Reason
from tests.support.recordings import Reading, new_parser, read, recording
from tests.support.rows import each_row


def reading(agent: str, name: str) -> Reading:
    return read(recording(agent, name))


class TestClaude:
    def test_a_denied_tool_is_no_success_although_it_is_called_one(self) -> None:
        outcome = reading("claude", "tools.default.jsonl").outcome
        assert (outcome.ok, outcome.reason, outcome.denials) == (False, Reason.REFUSED, ("Bash",))

    def test_an_api_error_is_no_success_although_it_is_called_one(self) -> None:
        outcome = reading("claude", "error401.default.jsonl").outcome
        assert (outcome.ok, outcome.reason) == (False, Reason.AGENT)
        assert outcome.detail == "Invalid API key · Fix external API key"

    def test_a_subagent_is_counted_once(self) -> None:
        """`usage` of the result leaves it out, and every block repeats the opening usage."""
        assert reading("claude", "subagent.acceptEdits.jsonl").outcome.tokens.input == 4 * 1230

    def test_partial_messages_count_while_it_speaks_and_the_result_settles(self) -> None:
        found = reading("claude", "tools.partial.jsonl")
        totals = [happening.data["output"] for happening in found.of(Kind.TOKENS)]
        assert totals == [1, 17, 18, 59]
        assert found.outcome.tokens == Tokens(2460, 59, 400)

    def test_what_an_interrupted_answer_used_is_kept(self) -> None:
        """Its result says zero."""
        assert reading("claude", "slow.partial-SIGINT.jsonl").outcome.tokens.input == 1230

    def test_an_interrupt_is_no_success_although_it_exits_with_0(self) -> None:
        outcome = reading("claude", "slow.SIGINT.jsonl").outcome
        assert (outcome.ok, outcome.reason) == (False, Reason.AGENT)

    def test_the_second_result_is_the_last_word(self) -> None:
        found = reading("claude", "background.acceptEdits.jsonl")
        assert len(found.of(Kind.RESULT)) == 2
        assert found.outcome.tokens.input == 3 * 1230
        parser = new_parser(StreamFormat.CLAUDE)
        record = recording("claude", "background.acceptEdits.jsonl")
        lines = record.output.splitlines(keepends=True)
        for line in lines[:-2]:  # the second turn has begun
            parser.feed(line)
        assert not parser.end(0, None).ok

    def test_the_exact_moment_of_a_limit_wins_over_its_words(self) -> None:
        outcome = reading("claude", "quotalimit.subscription.jsonl").outcome
        assert (outcome.reason, outcome.quota_until) == (Reason.QUOTA, 1794800588)

    def test_a_limit_that_is_near_is_a_warning(self) -> None:
        found = reading("claude", "quotawarn.subscription.jsonl")
        assert found.outcome.ok
        assert not found.of(Kind.QUOTA)
        assert [log.text for log in found.of(Kind.LOG)] == ["91% of the five_hour limit is used"]

    def test_an_overloaded_server_is_no_quota(self) -> None:
        assert reading("claude", "error529.default.jsonl").outcome.reason is Reason.AGENT

    def test_a_spent_budget_has_its_own_reason(self) -> None:
        assert reading("claude", "tools.budget.jsonl").outcome.reason is Reason.BUDGET

    def test_a_permission_that_is_asked_for_waits(self) -> None:
        (question,) = reading("claude", "permission.control.jsonl").of(Kind.QUESTION)
        assert question.data["waits"] is True
        assert question.data["request"]
        (unheard,) = reading("claude", "ask.acceptEdits.jsonl").of(Kind.QUESTION)
        assert unheard.data["waits"] is False
        assert unheard.text == "Which colour should the button have?"

    def test_a_written_file_is_told_when_it_is_written(self) -> None:
        tools = reading("claude", "write.acceptEdits.jsonl").of(Kind.TOOL)
        assert [(tool.data["state"], tool.data.get("file")) for tool in tools] == [
            (ToolState.STARTED, None),
            (ToolState.ENDED, "new.txt"),
        ]

    def test_an_exit_of_128_and_more_is_a_signal(self) -> None:
        outcome = reading("claude", "slow.SIGTERM.jsonl").outcome
        assert (outcome.reason, outcome.detail) == (Reason.SIGNAL, "ended with 143 (SIGTERM)")


class TestCodex:
    def test_reconnecting_is_no_end(self) -> None:
        found = reading("codex", "quotaonce.default.jsonl")
        assert found.outcome.ok
        assert [dict(retry.data) for retry in found.of(Kind.RETRY)] == [
            {"attempt": 1, "of": 5, "status": 429}
        ]

    def test_a_warning_item_is_no_error(self) -> None:
        found = reading("codex", "plain.unknown-model.jsonl")
        assert found.outcome.ok
        assert not found.of(Kind.ERROR)

    def test_a_refused_command_is_known_from_standard_error_only(self) -> None:
        record = recording("codex", "permission.default.jsonl")
        assert read(record).outcome.reason is Reason.REFUSED
        assert read(record._replace(aside=b"")).outcome.ok  # which is why it must be listened to

    def test_the_last_error_is_told_once(self) -> None:
        found = reading("codex", "error500.default.jsonl")
        assert len(found.of(Kind.ERROR)) == 1
        assert len(found.of(Kind.RETRY)) == 5

    def test_a_clock_time_without_a_date_is_the_next_one(self) -> None:
        outcome = reading("codex", "quotaplan.default.jsonl").outcome
        assert outcome.quota_until == 1794795600 + 119 * 60  # 4:19 AM, after 2:20

    def test_a_sentence_comes_out_of_an_api_object(self) -> None:
        detail = reading("codex", "error400.default.jsonl").outcome.detail
        assert detail.startswith("This model's maximum context length is 128000 tokens.")

    def test_why_nothing_began_is_told(self) -> None:
        outcome = reading("codex", "plain.nogit.jsonl").outcome
        assert outcome.reason is Reason.EXIT
        assert "Not inside a trusted directory" in outcome.detail


class TestGemini:
    @pytest.mark.parametrize("name", ["drop.default.jsonl", "empty.default.jsonl"])
    def test_a_failure_with_exit_0(self, name: str) -> None:
        record = recording("gemini", name)
        assert record.exit_code == 0
        assert read(record).outcome.reason is Reason.AGENT

    @pytest.mark.parametrize("name", ["slow.INT-group.jsonl", "longtool.TERM-group.jsonl"])
    def test_a_signal_leaves_exit_0_and_no_result(self, name: str) -> None:
        assert reading("gemini", name).outcome.reason is Reason.AGENT

    def test_a_tool_that_was_not_offered_is_a_denial(self) -> None:
        outcome = reading("gemini", "permission.default.jsonl").outcome
        assert outcome.reason is Reason.REFUSED
        assert outcome.denials == ("run_shell_command",)

    def test_a_tool_that_never_was_is_none(self) -> None:
        record = recording("gemini", "permission.default.jsonl")
        other = record.output.replace(b"run_shell_command", b"read_minds")
        assert read(record._replace(output=other)).outcome.ok

    def test_thoughts_are_output(self) -> None:
        assert reading("gemini", "plain.default.jsonl").outcome.tokens == Tokens(1234, 63, 1000, 7)

    def test_the_document_says_what_the_stream_says(self) -> None:
        stream = reading("gemini", "plain.default.jsonl").outcome
        document = reading("gemini", "plain.json.json").outcome
        assert document._replace(session_id=None) == stream._replace(session_id=None)

    def test_the_documents_error_stands_on_standard_error(self) -> None:
        outcome = reading("gemini", "error401.json.txt").outcome
        assert outcome.reason is Reason.AGENT
        assert outcome.detail.endswith("(UNAUTHENTICATED)")

    def test_retries_are_heard_on_the_side(self) -> None:
        retries = reading("gemini", "quotaonce.default.jsonl").of(Kind.RETRY)
        assert [dict(retry.data) for retry in retries] == [{"attempt": 1}, {"wait_sec": 5.9}]

    def test_the_prompt_it_repeats_is_no_text(self) -> None:
        texts = reading("gemini", "plain.default.jsonl").of(Kind.TEXT)
        assert [text.text for text in texts] == ["Hello from the stand-in. This is a plain answer."]


class TestOpencode:
    def test_steps_are_added_up(self) -> None:
        outcome = reading("opencode", "tools.default.jsonl").outcome
        assert outcome.tokens == Tokens(3579, 134, 3000, 16)
        assert outcome.cost == pytest.approx(0.001147)

    def test_a_rejected_tool_ends_the_run_with_exit_0(self) -> None:
        outcome = reading("opencode", "permission.default.jsonl").outcome
        assert (outcome.reason, outcome.denials) == (Reason.REFUSED, ("bash",))

    def test_a_command_that_fails_is_a_tool_that_failed(self) -> None:
        (tool,) = reading("opencode", "fail.default.jsonl").of(Kind.TOOL)
        assert tool.data["state"] is ToolState.FAILED

    def test_answers_that_break_off_without_end_are_told_once_as_hopeless(self) -> None:
        found = reading("opencode", "drop.default.jsonl")
        assert len(found.of(Kind.RETRY)) > HOPELESS
        (error,) = found.of(Kind.ERROR)
        assert error.data["hopeless"] is True

    def test_the_servers_own_moment_is_used(self) -> None:
        outcome = reading("opencode", "quotaplan.default.jsonl").outcome
        assert (outcome.reason, outcome.quota_until) == (Reason.QUOTA, 1794803351)

    def test_an_answer_that_was_cut_is_not_done(self) -> None:
        record = recording("opencode", "plain.default.jsonl")
        cut = record.output.replace(b'"reason":"stop"', b'"reason":"length"')
        outcome = read(record._replace(output=cut)).outcome
        assert (outcome.reason, outcome.detail) == (Reason.AGENT, "its answer ended early: length")


class TestAider:
    @each_row(
        ("name", "reason"),
        [
            ("error401.default.txt", Reason.AGENT),
            ("error400.default.txt", Reason.AGENT),
            ("error500.default.txt", Reason.AGENT),
            ("empty.default.txt", Reason.AGENT),
            ("slow.INT-group.txt", Reason.AGENT),
            ("quota.default.txt", Reason.QUOTA),
            ("quotafunds.default.txt", Reason.QUOTA),
        ],
    )
    def test_failures_that_exit_with_0(self, name: str, reason: Reason) -> None:
        record = recording("aider", name)
        assert record.exit_code == 0
        assert read(record).outcome.reason is reason

    def test_an_error_wrapped_over_lines_is_one_sentence(self) -> None:
        detail = reading("aider", "error500.default.txt").outcome.detail
        assert detail.endswith(
            "The server had an error while processing your request. Sorry about that!"
        )

    def test_an_edit_and_a_commit_are_seen(self) -> None:
        tools = reading("aider", "tools.default.txt").of(Kind.TOOL)
        assert [(tool.data["tool"], tool.text) for tool in tools] == [
            ("edit", "out.md"),
            ("commit", "docs: add out.md"),
        ]

    def test_figures_are_added_up_and_the_session_costs_what_it_says(self) -> None:
        parser = new_parser(StreamFormat.AIDER)
        usage = b"Tokens: %s sent, 1k cache hit, %s received. Cost: $0.01 message, $%s session.\n"
        parser.feed(b"One.\n" + usage % (b"1.2k", b"56", b"0.01"))
        parser.feed(b"Two.\n" + usage % (b"2M", b"1,044", b"0.02"))
        outcome = parser.end(0, None)
        assert outcome.tokens == Tokens(2_001_200, 1_100, 2_000)
        assert outcome.cost == 0.02

    def test_an_answer_about_errors_is_an_answer(self) -> None:
        parser = new_parser(StreamFormat.AIDER)
        parser.feed(b"So wait:\n\nlitellm.RateLimitError: this is what your log says\n")
        parser.feed(b"Tokens: 10 sent, 5 received. Cost: $0.01 message, $0.01 session.\n")
        assert parser.end(0, None).ok


class TestPlain:
    def judged(
        self, output: bytes, exit_code: int | None, signal: int | None = None
    ) -> tuple[Reason | None, str]:
        parser = new_parser(StreamFormat.PLAIN)
        parser.feed(output)
        outcome = parser.end(exit_code, signal)
        return outcome.reason, outcome.detail

    def test_the_exit_code_decides(self) -> None:
        assert self.judged(b"", 0) == (None, "")
        assert self.judged(b"boom\n", 3) == (Reason.EXIT, "ended with exit code 3: boom")
        assert self.judged(b"", None, 11) == (Reason.SIGNAL, "ended by SIGSEGV")
        assert self.judged(b"", None, 99) == (Reason.SIGNAL, "ended by signal 99")
        assert self.judged(b"", 137) == (Reason.SIGNAL, "ended with 137 (SIGKILL)")

    def test_a_command_that_is_not_there(self) -> None:
        """H12"""
        assert self.judged(b"", 127) == (Reason.NOT_FOUND, "the command was not found")
        said = b"sh: 1: claud: not found\n"
        assert self.judged(said, 127) == (Reason.NOT_FOUND, "sh: 1: claud: not found")

    def test_an_agent_that_spoke_was_there(self) -> None:
        record = recording("codex", "slow.INT-group.jsonl")
        assert read(record._replace(exit_code=127)).outcome.reason is Reason.EXIT

    def test_memory_that_ran_out_is_known_from_its_last_words(self) -> None:
        words = b"FATAL ERROR: Reached heap limit - JavaScript heap out of memory\n"
        assert self.judged(words, None, 6)[0] is Reason.OOM

    def test_of_thousands_of_lines_at_once_only_the_last_are_read(self) -> None:
        lines = [b"line %d of a chatty build\n" % number for number in range(5000)]
        parser = new_parser(StreamFormat.PLAIN)
        left_out, *told = parser.feed(b"the end of " + b"".join(lines) + b"and the begin")
        assert (left_out.kind, left_out.data["lines"]) == (Kind.SKIPPED, 5000 - READ_AT_ONCE)
        assert [one.text.encode() + b"\n" for one in told] == lines[-READ_AT_ONCE:]
        assert [one.text for one in parser.feed(b"ning\n")] == ["and the beginning"]

    def test_what_explains_a_failure_is_found_among_lines_that_were_not_read(self) -> None:
        words = b"FATAL ERROR: Reached heap limit - JavaScript heap out of memory\n"
        assert self.judged(words + b"at a frame of its stack\n" * 100, None, 6)[0] is Reason.OOM
        limit = b"You've hit your usage limit. Try again in 2 hours.\n"
        assert self.judged(b"fine\n" * 5000 + limit, 1)[0] is Reason.QUOTA
        assert self.judged(limit + b"fine\n" * 5000, 1)[0] is Reason.EXIT

    def test_a_limit_explains_a_failure_near_its_end_only(self) -> None:
        limit = b"Error: You've hit your usage limit, try again in 2h 14m.\n"
        parser = new_parser(StreamFormat.PLAIN)
        parser.feed(limit)
        outcome = parser.end(1, None)
        assert outcome.reason is Reason.QUOTA
        assert outcome.quota_until == 1794795600 + 2 * 3600 + 14 * 60
        assert self.judged(limit, 0) == (None, "")
        assert self.judged(limit + b"and on\n" * 30, 1)[0] is Reason.EXIT

    def test_a_progress_bar_is_its_last_state(self) -> None:
        parser = new_parser(StreamFormat.PLAIN)
        (line,) = parser.feed(b"10%\r50%\r\x1b[32m100%\x1b[0m\r\n")
        assert (line.kind, line.text) == (Kind.TEXT, "100%")
