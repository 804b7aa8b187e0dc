"""The registry as tools: what clients of every version see, and what no client can do."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mam_core.audit import AuditEvent
from mam_core.config import load
from mam_core.errors import InvalidField
from mam_core.mcp.tool import Tool
from mam_core.mcp.wire import MOST_BYTES
from mam_core.operations.mcp import ALL_TOOLS, chosen, serve
from mam_core.records import Status
from mam_core.registry import Registry
from mam_core.wiring import open_registry
from tests.console.detail_story import HOSTILE, note, output_of
from tests.support.handles import close_later
from tests.support.jobs import add
from tests.support.rows import each_row

READS = [tool.name for tool in ALL_TOOLS if not tool.changes]
ACTS = [tool.name for tool in ALL_TOOLS if tool.changes]
Answers = list[dict[str, Any]]


class Client:
    """Sends everything at once, closes, and reads what came back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []

    def lines(self, *lines: bytes, allow_write: bool = False) -> Answers:
        out = io.BytesIO()
        serve(
            lambda: open_registry(str(self.folder / "jobs"), config=load()),
            str(self.folder / "jobs"),
            load(),
            (io.BytesIO(b"".join(line + b"\n" for line in lines)), out),
            self.said.append,
            allow_write=allow_write,
        )
        return [json.loads(line) for line in out.getvalue().splitlines()]

    def ask(self, method: str, allow_write: bool = False, **params: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        (answer,) = self.lines(json.dumps(message).encode(), allow_write=allow_write)
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
        return answer

    def call(self, name: str, **given: Any) -> Any:
        """What the tool found."""
        result = self.ask("tools/call", True, name=name, arguments=given)["result"]
        (content,) = result["content"]
        assert not result["isError"], content
        return json.loads(content["text"])

    def refused(self, name: str, **given: Any) -> str:
        result = self.ask("tools/call", True, name=name, arguments=given)["result"]
        assert result["isError"]
        text: str = result["content"][0]["text"]
        assert "Traceback" not in text
        return text


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return close_later(open_registry(str(tmp_path / "jobs"), config=load()))


class TestTheProtocol:
    @pytest.mark.parametrize(
        ("asked", "given"),
        [
            ("2025-11-25", "2025-11-25"),
            ("2024-11-05", "2024-11-05"),
            ("1999-01-01", "2025-11-25"),
        ],
    )
    def test_a_version_is_agreed_on(self, client: Client, asked: str, given: str) -> None:
        info = {"name": "test", "version": "1"}
        hello = client.ask("initialize", protocolVersion=asked, capabilities={}, clientInfo=info)
        told = hello["result"]
        assert told["protocolVersion"] == given
        assert told["capabilities"] == {"tools": {"listChanged": False}}
        assert told["serverInfo"]["name"] == "mam"
        assert "only looks" in told["instructions"]

    def test_without_a_handshake_each_request_names_its_version(self, client: Client) -> None:
        key = "io.modelcontextprotocol/protocolVersion"
        meta = {key: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
        told = client.ask("server/discover", _meta=meta)["result"]
        assert "2026-07-28" in told["supportedVersions"]
        tools = client.ask("tools/list", _meta=meta)["result"]
        assert (tools["resultType"], tools["ttlMs"], tools["cacheScope"]) == (
            "complete",
            0,
            "private",
        )
        error = client.ask("tools/list", _meta={key: "2099-01-01"})["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}

    def test_tools_say_what_they_take(self, client: Client) -> None:
        tools = client.ask("tools/list", allow_write=True)["result"]["tools"]
        assert [tool["name"] for tool in tools] == [*READS, *ACTS]
        for tool in tools:
            assert tool["inputSchema"]["type"] == "object"
            assert tool["inputSchema"]["additionalProperties"] is False
            assert set(tool["inputSchema"].get("required", ())) <= set(
                tool["inputSchema"]["properties"]
            )
            assert tool["annotations"]["readOnlyHint"] is (tool["name"] in READS)

    def test_what_is_no_message_costs_one_error(self, client: Client) -> None:
        ping = b'{"jsonrpc":"2.0","id":"p","method":"ping"}'
        lines: list[tuple[bytes, int]] = [
            (b"no json", -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 200_000, -32700),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":NaN}', -32700),
            (b"[]", -32600),
            (b"7", -32600),
            (b'{"id":1,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"frob"}', -32601),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":[]}}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"initialize"}', -32602),
            (b'"' + b"x" * (MOST_BYTES + 10) + b'"', -32600),
        ]
        answers = client.lines(*(line for pair in lines for line in (pair[0], ping)))
        assert [answer["error"]["code"] for answer in answers[::2]] == [code for _, code in lines]
        assert all(
            answer == {"jsonrpc": "2.0", "id": "p", "result": {}} for answer in answers[1::2]
        )

    def test_notifications_and_answers_are_not_answered(self, client: Client) -> None:
        assert not client.lines(
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
            b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"cancel_job"}}',
            b'{"jsonrpc":"2.0","id":4,"result":{}}',
            b"",
        )

    def test_a_list_of_messages_is_taken_apart(self, client: Client) -> None:
        one = '{"jsonrpc":"2.0","id":%d,"method":"ping"}'
        answers = client.lines(f"[{one % 1},{one % 2},7]".encode())
        assert [answer["id"] for answer in answers] == [1, 2, None]

    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.binary(max_size=60))
    def test_any_line_leaves_the_server_serving(self, client: Client, line: bytes) -> None:
        last = b'{"jsonrpc":"2.0","id":"last","method":"ping"}'
        answers = client.lines(*line.split(b"\n"), last)
        assert answers[-1] == {"jsonrpc": "2.0", "id": "last", "result": {}}


class TestLooking:
    def test_jobs_are_listed_and_looked_at(self, client: Client, registry: Registry) -> None:
        first, second = add(registry, "count the stars"), add(registry, "name them", group="night")
        registry.claim("alpha")
        found = client.call("list_jobs")
        assert [job["job_id"] for job in found["jobs"]] == [first, second]
        assert client.call("list_jobs", status=["pending"])["jobs"][0]["group"] == "night"
        assert client.call("list_jobs", limit=1)["left_out"] == 1
        told = client.call("get_job", job_id=first)
        assert told["record"]["prompt"] == "count the stars"
        assert "running" in told["why"][0]

    def test_history_and_output_are_bounded(self, client: Client, registry: Registry) -> None:
        job_id = add(registry)
        registry.claim("alpha")
        assert client.call("job_output", job_id=job_id)["text"] == ""
        output_of(registry, job_id, 1).write_text("one\n" * 50_000 + "\x1b[31mlast\x1b[0m\n")
        told = client.call("job_output", job_id=job_id, lines=2)
        assert told["text"] == "one\nlast"
        assert len(client.call("job_history", job_id=job_id, tail=1)["events"]) == 1
        for _ in range(30):
            note(registry, job_id, AuditEvent.STALE, attempt=1, why="x" * 4000)
        assert "ask for fewer" in client.refused("job_history", job_id=job_id)

    def test_a_wait_ends_with_the_jobs_or_with_its_time(
        self, client: Client, registry: Registry
    ) -> None:
        job_id = add(registry)
        told = client.call("wait_for_jobs", job_ids=[job_id], timeout_sec=0)
        assert told["ended"] is False
        registry.set_status(job_id, Status.COMPLETED)
        told = client.call("wait_for_jobs", job_ids=[job_id], timeout_sec=50)
        assert (told["ended"], told["jobs"][0]["status"]) == (True, "completed")

    def test_agents_and_needs_are_named(self, client: Client, registry: Registry) -> None:
        job_id = add(registry)
        registry.claim("alpha")
        registry.finish(job_id, Status.ERROR, attempt=1, detail="it left with 3")
        (need,) = client.call("attention")["needs"]
        assert (need["job_id"], need["can_be_answered"]) == (job_id, False)
        assert "claude-code" in {one["agent"] for one in client.call("list_agents")["agents"]}

    def test_no_secret_is_told(self, client: Client, registry: Registry) -> None:
        password = 'p"ss <word>'
        broker = {"host": "127.0.0.1", "port": 1, "username": "u", "password": password}
        job_id = add(registry, f"use {password}", auth_token=True, broker=broker)
        token = registry.get(job_id).auth_token
        assert token
        registry.claim("alpha")
        output_of(registry, job_id, 1).write_text(f"{token} sk-abcdefghijklmnopqrst\n")
        registry.finish(job_id, Status.ERROR, attempt=1, detail=f"{token} {password}")
        given: Mapping[str, dict[str, Any]] = {
            "list_jobs": {},
            "get_job": {"job_id": job_id},
            "wait_for_jobs": {"job_ids": [job_id]},
            "job_history": {"job_id": job_id},
            "job_output": {"job_id": job_id},
            "attention": {},
        }
        for name, arguments in given.items():
            told = json.dumps(client.call(name, **arguments))
            for secret in (token, json.dumps(password)[1:-1], "sk-abcdefgh"):
                assert secret not in told, name

    def test_hostile_texts_reach_the_model_as_escapes(
        self, client: Client, registry: Registry
    ) -> None:
        job_id = add(registry, HOSTILE)
        result = client.ask("tools/call", name="get_job", arguments={"job_id": job_id})["result"]
        text = result["content"][0]["text"]
        assert text.replace("\n", "").isprintable()
        assert json.loads(text)["record"]["prompt"] == HOSTILE


class TestActing:
    def test_only_looking_is_the_default(self, client: Client, registry: Registry) -> None:
        job_id = add(registry)
        for name in ACTS:
            error = client.ask("tools/call", name=name, arguments={"job_id": job_id})["error"]
            assert error["code"] == -32602
        assert registry.get(job_id).status is Status.PENDING
        assert chosen(allow_write=False, only=["get_job"])[0].name == "get_job"
        with pytest.raises(InvalidField, match="cancel_job needs --allow-write"):
            chosen(allow_write=False, only=["cancel_job"])
        with pytest.raises(InvalidField, match="the tool frob is none of list_jobs"):
            chosen(allow_write=True, only=["frob"])

    def test_looking_writes_nothing(
        self, client: Client, registry: Registry, tmp_path: Path
    ) -> None:
        job_id = add(registry)
        log = tmp_path / "delegate_job_logs"
        before = registry.get(job_id), sorted(log.rglob("*"))
        for name in ("list_jobs", "attention", "list_agents"):
            client.call(name)
        for name in ("get_job", "job_history", "job_output"):
            client.call(name, job_id=job_id)
        client.call("wait_for_jobs", job_ids=[job_id], timeout_sec=0)
        assert (registry.get(job_id), sorted(log.rglob("*"))) == before

    def test_a_job_is_registered_followed_and_taken_back(
        self, client: Client, registry: Registry
    ) -> None:
        asked = {"prompt": "count", "agent": "codex", "agent_session": "tmux:c", "key": "nightly"}
        mistyped = {"prompt": "x", "agent": "codx", "agent_session": "tmux:c"}
        assert client.call("register_job", **mistyped)["warnings"] == [
            "unknown agent 'codx'. Did you mean codex?"
        ]
        assert client.call("list_jobs", agent_session="tmux:d")["warnings"] == [
            "unknown label 'tmux:d'. Did you mean tmux:c?"
        ]
        job_id = client.call("register_job", **asked)["job_id"]
        assert client.call("register_job", **asked)["job_id"] == job_id
        assert registry.get(job_id).agent == "codex"
        first = next(iter(registry.store.audit.events(job_id)))
        assert str(first["by"]).endswith("(mcp)")
        client.call("cancel_job", job_id=job_id, why="changed my mind")
        assert registry.get(job_id).status is Status.CANCELLED
        client.call("retry_job", job_id=job_id)
        assert registry.get(job_id).status is Status.PENDING

    def test_a_job_works_where_the_operator_allows_it(
        self, client: Client, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started, named, other = (tmp_path / one for one in ("s", "n", "o"))
        for one in (started / "deep", named, other):
            one.mkdir(parents=True)
        (started / "out").symlink_to("/etc")
        project = tmp_path / "project"
        (project / ".mam" / "jobs").mkdir(parents=True)
        client.folder = project / ".mam"
        monkeypatch.chdir(started)

        def register(**where: str) -> str:
            asked = {"prompt": "count", "agent": "codex", "agent_session": "tmux:c", **where}
            job_id = client.call("register_job", **asked)["job_id"]
            record = json.loads((project / ".mam" / "jobs" / f"{job_id}.json").read_text())
            return str(record["workdir"])

        def refuse(where: str) -> str:
            return client.refused(
                "register_job", prompt="x", agent="codex", agent_session="c", workdir=where
            )

        assert register() == str(started)
        assert register(workdir="deep") == str(started / "deep")
        assert register(workdir=str(project)) == str(project)
        assert register(workdir=f"{project}/../s/deep/") == str(started / "deep")
        outside = ("/", "/etc", str(other), str(started / "out"), "~", "..", f"{started}x")
        for where in outside:
            assert "in none of the folders that this server may use" in refuse(where), where
            assert f"({started}, {project})" in refuse(where)
        for where in ("a\0b", "\ud800"):
            assert refuse(where) == "workdir: it is not a path"
        (started / "mam.toml").write_text(f'[mcp]\nworkdirs = ["{named}", "../o"]\n')
        assert register(workdir=str(other)) == str(other)
        assert f"({named}, {other})" in refuse("deep")
        assert "in none of" in client.refused(
            "register_job", prompt="x", agent="codex", agent_session="c"
        )

    def test_a_server_that_is_started_in_the_root_is_not_free(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As some clients do with all of their servers."""
        monkeypatch.chdir("/")
        refused = client.refused(
            "register_job", prompt="x", agent="codex", agent_session="c", workdir="/etc"
        )
        assert f"({client.folder})" in refused

    @each_row(
        ("name", "given", "sentence"),
        [
            ("register_job", {}, "register_job needs prompt: what the agent is to do"),
            ("register_job", {"prompt": "x"}, "register_job needs agent, agent_session"),
            (
                "register_job",
                {"prompt": "rm -rf ~", "agent": "shell", "agent_session": "a"},
                "a job of the agent shell is a shell line",
            ),
            ("register_job", {"prompt": "x", "validate": "rm -rf ~"}, "no argument 'validate'"),
            ("register_job", {"prompt": "x", "priority": True}, "priority must be of type integer"),
            ("get_job", {"job_id": "../../etc/passwd"}, "is no job id"),
            ("get_job", {"job_id": "nobody"}, "there is no job nobody"),
            ("get_job", {"job_id": 7}, "job_id must be of type string"),
            ("job_output", {"job_id": "nobody"}, "there is no job nobody"),
            ("list_jobs", {"limit": 10**9}, "limit must be at most 200"),
            ("list_jobs", {"status": ["lost"]}, "'lost' is no status"),
            ("wait_for_jobs", {"job_ids": []}, "job_ids must name 1 to 200 jobs"),
            ("wait_for_jobs", {"job_ids": ["a"], "timeout_sec": 3600}, "must be at most 50"),
            ("cancel_job", {"job_id": "nobody"}, "there is no job nobody"),
            ("answer_question", {"job_id": "nobody", "text": "y"}, "there is no job nobody"),
            ("say_to_agent", {"job_id": "nobody", "text": "y"}, "there is no job nobody"),
        ],
    )
    def test_what_is_wrong_is_one_sentence_for_the_model(
        self, client: Client, name: str, given: dict[str, Any], sentence: str
    ) -> None:
        told = client.refused(name, **given)
        assert sentence in told
        assert "\n" not in told

    def test_a_mistake_of_ours_is_no_traceback(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> Any:
            raise KeyError("a secret of the inside")

        broken: Callable[..., list[Tool]] = lambda **_: [ALL_TOOLS[0]._replace(call=fail)]  # noqa: E731
        monkeypatch.setattr("mam_core.operations.mcp.chosen", broken)
        assert client.refused("list_jobs") == "this is a mistake in mam: KeyError"
        assert len(client.said) == 1
