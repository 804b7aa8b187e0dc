"""A task as the file has it, and each step that it can take."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mam_core.dispatch import tasks
from mam_core.dispatch.layout import Sheet, Whole, compose, parse
from mam_core.dispatch.tasks import (
    JOB_STATUS,
    TASK_STATUS,
    DispatchError,
    Task,
    TaskStatus,
    task_status,
)
from mam_core.records import Job, Reason, Status
from tests.support.rows import each_row

#: The document's own example, word for word.
DOCUMENT = b"""{
  "version": 1,
  "updated_at": "2026-02-11T22:00:00-08:00",
  "tasks": {
    "S01": {
      "status": "completed",
      "node": "mac2",
      "pid": 9341,
      "started_at": "2026-02-11T22:12:52-08:00",
      "completed_at": "2026-02-11T22:35:00-08:00",
      "log": "~/clawmarketing-logs/S01.log"
    },
    "S08": {
      "status": "running",
      "node": "codex-node-1",
      "pid": 12345,
      "started_at": "2026-02-11T22:12:52-08:00"
    },
    "S15": {
      "status": "pending"
    }
  }
}"""

NOW = 1_770_000_000.0


class TestShape:
    def test_the_documents_example_is_read_and_says_the_same_when_we_write_it(self) -> None:
        """M2, M3, M4."""
        whole = parse(DOCUMENT)
        assert [task.status for task in whole.tasks.values()] == ["completed", "running", "pending"]
        assert whole.tasks["S15"].to_dict() == {"status": "pending"}
        again = parse(compose(whole))
        assert again == whole
        assert list(again.header) == ["version", "updated_at"]

    def test_what_other_tools_wrote_is_kept(self) -> None:
        task_text = '{"S01":{"status":"pending","x":[1]}}'
        text = f'{{"version":1,"owner":{{"tasks":{{"S01":{{}}}}}},"tasks":{task_text}}}'
        whole = parse(text.encode())
        assert whole.header["owner"] == {"tasks": {"S01": {}}}
        assert whole.tasks["S01"].extra == {"x": [1]}
        sheet = Sheet(compose(whole))
        task = sheet.get("S01")
        assert task is not None
        sheet.put("S01", tasks.claimed(task, "a", 1, "job", NOW))
        after = parse(sheet.text)
        assert after.header["owner"] == whole.header["owner"]
        assert after.tasks["S01"].extra == {"x": [1]}

    @each_row(
        ("text", "words"),
        [
            ('{"version":1,"tasks":{"S01":{"status":"paused"}}}', "'paused': say one of pending"),
            ('{"version":1,"tasks":{"S01":{}}}', "status None"),
            ('{"version":1,"tasks":{"S01":"pending"}}', "is no object"),
            ('{"version":1,"tasks":{"S01":{"status":"running","pid":"7"}}}', "a pid that is '7'"),
            ('{"version":1,"tasks":{"S01":{"status":"running","pid":true}}}', "a pid that is"),
            ('{"version":2,"tasks":{}}', "its version is 2"),
            ('{"version":1}', "it has no tasks"),
            ("[]", "it has no tasks"),
            ('{"version":1,"tasks":{"S01":{"status":"pending","x":NaN}}}', "NaN is no number"),
            ("{", "it is not JSON"),
            ("[" * 100_000, "nested too deeply"),
        ],
    )
    def test_what_is_no_dispatch_registry_is_refused_in_a_sentence(
        self, text: str, words: str
    ) -> None:
        """M3."""
        with pytest.raises(DispatchError, match=re.escape(words)):
            parse(text.encode())


class TestSteps:
    def test_the_five_cases_of_a_claim(self) -> None:
        """M5: pending and failed can be claimed, what somebody has or did cannot."""
        said = {
            status: tasks.refusal("S01", Task(status, node="mac2")) for status in (*TaskStatus,)
        }
        assert said["pending"] == said["failed"] == ""
        assert said["claimed"] == "task S01 is claimed by mac2"
        assert said["running"] == "task S01 is running by mac2"
        assert said["completed"] == "task S01 is completed by mac2: it is not run again"

    def test_what_each_state_has(self) -> None:
        """M4, M7."""
        pending = Task(TaskStatus.PENDING, spec="S01-x.md")
        claimed = tasks.claimed(pending, "mac2", 12, "abc", NOW)
        assert set(claimed.to_dict()) == {
            *("status", "node", "pid", "started_at", "spec", "attempt", "job"),
        }
        running = tasks.started(claimed, 34, "/logs/S01.log")
        assert running.to_dict() == {
            **claimed.to_dict(),
            "status": "running",
            "pid": 34,
            "log": "/logs/S01.log",
        }
        done = tasks.completed(running, NOW + 60)
        assert tasks.moment(done.completed_at) == NOW + 60
        failed = tasks.failed(running, "exit: ended with exit code 1")
        assert failed.to_dict() == {
            **running.to_dict(),
            "status": "failed",
            "error": "exit: ended with exit code 1",
        }
        again = tasks.claimed(failed, "mac3", 56, "def", NOW)
        assert (again.attempt, again.error, again.log) == (2, None, None)
        back = tasks.released(again)
        assert back.to_dict() == {
            "status": "pending",
            "spec": "S01-x.md",
            "attempt": 2,
            "released": {"node": "mac3", "started_at": again.started_at},
        }

    def test_moments_are_local_with_their_offset_and_both_forms_are_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """M2, X10."""
        import time

        monkeypatch.setenv("TZ", "America/Los_Angeles")
        time.tzset()
        try:
            shown = tasks.local_stamp(NOW)
        finally:
            monkeypatch.undo()
            time.tzset()
        assert shown == "2026-02-01T18:40:00-08:00"
        assert tasks.moment(shown) == tasks.moment("2026-02-02T02:40:00Z") == NOW
        assert tasks.moment("soon") == 0.0


class TestOneTable:
    def test_failed_is_error_and_claimed_is_running_without_a_process(self) -> None:
        """Decision 4, X3, X4."""
        for status in Status:
            back = JOB_STATUS[TASK_STATUS[status]]
            assert back is (Status.ERROR if status is Status.CANCELLED else status)
        assert JOB_STATUS[TaskStatus.CLAIMED] is Status.RUNNING
        assert task_status(Job("a", Status.RUNNING)) is TaskStatus.CLAIMED
        assert task_status(Job("a", Status.RUNNING, pid=7)) is TaskStatus.RUNNING

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"status": Status.CANCELLED, "reason": Reason.CANCELLED}, "cancelled"),
            (
                {
                    "status": Status.CANCELLED,
                    "reason": Reason.CANCELLED,
                    "detail": "cancelled by ann: too slow",
                },
                "cancelled by ann: too slow",
            ),
            ({"status": Status.ERROR, "reason": Reason.EXIT, "detail": "code 3"}, "exit: code 3"),
            ({"status": Status.ERROR}, "error"),
        ],
    )
    def test_why_a_job_did_not_complete_is_the_tasks_error(
        self, fields: dict[str, Any], words: str
    ) -> None:
        """M7, X4: a task has no word for cancelled; its error has."""
        assert tasks.error_of(Job("a", **fields)) == words


class TestLayout:
    @each_row("name", ["S01", 'S"1', "S\\", "S é", "S\n", "S\ud800", "S: {"])
    def test_a_task_is_found_by_any_name(self, name: str) -> None:
        """M16."""
        others = {f"S{n:02}": Task(TaskStatus.PENDING, error='"S01": {') for n in range(2, 5)}
        whole = Whole({}, {"S": Task(TaskStatus.PENDING), name: Task(TaskStatus.FAILED), **others})
        sheet = Sheet(compose(whole))
        assert sheet.get(name) == Task(TaskStatus.FAILED, extra={})
        sheet.put(name, Task(TaskStatus.COMPLETED))
        assert parse(sheet.text).tasks == {**parse(compose(whole)).tasks, name: sheet.get(name)}
        assert sheet.get("S99") is None

    def test_the_date_is_set_and_nothing_else(self) -> None:
        sheet = Sheet(compose(parse(DOCUMENT)))
        sheet.date("2026-03-01T00:00:00+00:00")
        whole = parse(sheet.text)
        assert whole.header["updated_at"] == "2026-03-01T00:00:00+00:00"
        assert whole.tasks == parse(DOCUMENT).tasks

    def test_an_empty_list_of_tasks_is_a_registry(self) -> None:
        sheet = Sheet(compose(Whole({}, {})))
        assert (sheet.block, sheet.get("S01")) == (b"", None)
        assert parse(sheet.text).tasks == {}
