"""The channels of agents, set up for real: what is written, what runs, what hostile bytes do."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam_core.agents.channels import prepare, reader_for
from mam_core.agents.channels.claude import EVENTS
from mam_core.agents.channels.osc import MAX_REPORT_BYTES, Report, Scanner
from mam_core.agents.channels.spool import MAX_BYTES, MAX_FILES, Spool, command
from mam_core.agents.profiles import BUILT_IN, Mode, Profile
from mam_core.agents.signs import AgentState
from mam_core.agents.streams import StreamFormat
from tests.support.channel_recordings import profile_in, reader_in, write_status
from tests.support.recordings import SAMPLES
from tests.support.rows import each_row


def run(line: str, given: bytes) -> subprocess.CompletedProcess[bytes]:
    """As an agent runs a hook: a line for a shell."""
    return subprocess.run(
        ["/bin/sh", "-c", line], input=given, capture_output=True, timeout=60, check=False
    )


class TestTheHookCommand:
    @pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish"])
    def test_leaves_one_call_whichever_shell_runs_it(self, shell: str, tmp_path: Path) -> None:
        found = shutil.which(shell)
        if found is None:
            pytest.skip(f"there is no {shell} here")
        spool = Spool(str(tmp_path / 'it\'s a folder; with $(blanks) & "quotes"'))
        spool.empty()
        done = subprocess.run(
            [found, "-c", command(spool.path, "Stop")],
            input=b'{"hook_event_name": "Stop"}',
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        (call,) = spool.take()
        assert (call.event, call.data) == ("Stop", {"hook_event_name": "Stop"})
        assert spool.take() == []

    def test_takes_200_kilobytes_from_fifty_at_once(self, tmp_path: Path) -> None:
        spool = Spool(str(tmp_path))
        spool.empty()
        given = json.dumps({"last_assistant_message": "x" * 200_000}).encode()
        started = [
            subprocess.Popen(
                ["/bin/sh", "-c", command(spool.path, "Stop")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            for _ in range(50)
        ]
        for one in started:
            out, _ = one.communicate(given, timeout=60)
            assert (one.returncode, out) == (0, b"")
        calls = spool.take()
        assert len(calls) == 50
        assert {len(call.data["last_assistant_message"]) for call in calls} == {200_000}
        assert os.listdir(spool.path) == []

    def test_its_files_are_the_owners_alone(self, tmp_path: Path) -> None:
        spool = Spool(str(tmp_path))
        spool.empty()
        run(command(spool.path, "Stop"), b"{}")
        (path,) = Path(spool.path).iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(Path(spool.path).stat().st_mode) == 0o700

    def test_a_folder_that_is_gone_is_no_trouble(self, tmp_path: Path) -> None:
        done = run(command(str(tmp_path / "gone"), "Stop"), b"x" * 200_000)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def test_a_folder_that_takes_no_files_is_no_trouble(self, tmp_path: Path) -> None:
        (tmp_path / "spool").write_text("not a folder")
        done = run(command(str(tmp_path / "spool"), "Stop"), b"x" * 200_000)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        missing = run(command("/proc/self", "Stop"), b"x" * 200_000)
        assert (missing.returncode, missing.stdout, missing.stderr) == (0, b"", b"")

    def test_on_a_full_disk_the_call_is_told_without_its_words(self, tmp_path: Path) -> None:
        """A file that may not grow stands for a disk that is full."""
        spool = Spool(str(tmp_path))
        spool.empty()
        # The limit counts in blocks of 512 bytes; the shell's own signal for it is ignored.
        line = f"trap '' XFSZ; ulimit -f 8; {command(spool.path, 'Stop')}"
        done = run(line, b'{"a": "' + b"x" * 200_000 + b'"}')
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        (call,) = spool.take()
        assert (call.event, call.data) == ("Stop", {})
        assert os.listdir(spool.path) == []

    def test_what_is_too_long_is_cut_and_the_event_still_known(self, tmp_path: Path) -> None:
        spool = Spool(str(tmp_path))
        spool.empty()
        run(command(spool.path, "PostToolUse"), b'{"a": "' + b"x" * MAX_BYTES + b'"}')
        (call,) = spool.take()
        assert (call.event, call.data) == ("PostToolUse", {})


class TestTheSpool:
    def test_is_read_in_the_order_of_the_calls(self, tmp_path: Path) -> None:
        spool = Spool(str(tmp_path))
        spool.empty()
        for number, name in enumerate(["b.2", "a.9", "c.1-2", "c.1-10"]):
            path = Path(spool.path) / name
            path.write_text("{}")
            os.utime(path, ns=(number // 2, number // 2))
        assert [call.event for call in spool.take()] == ["b", "a", "c", "c"]

    def test_of_too_many_the_oldest_go_unread(self, tmp_path: Path) -> None:
        spool = Spool(str(tmp_path))
        spool.empty()
        for number in range(MAX_FILES + 3):
            path = Path(spool.path) / f"Stop.{number}"
            path.write_text(json.dumps({"n": number}))
            os.utime(path, ns=(number, number))
        calls = spool.take()
        assert [calls[0].data["n"], calls[-1].data["n"]] == [3, MAX_FILES + 2]
        assert os.listdir(spool.path) == []

    def test_believes_no_link_and_no_other_name(self, tmp_path: Path) -> None:
        spool = Spool(str(tmp_path))
        spool.empty()
        secret = tmp_path / "secret"
        secret.write_text('{"secret": 1}')
        place = Path(spool.path)
        (place / "Stop.1").symlink_to(secret)
        os.mkfifo(place / "Stop.2")
        (place / "what is this").write_text("{}")
        (place / "Stop.3").write_text("[" * 100_000)
        (place / "Stop.4").write_bytes(b"\xff\xfe")
        assert [call.data for call in spool.take()] == [{}, {}]
        assert os.listdir(spool.path) == []
        assert secret.exists()

    def test_what_an_earlier_agent_said_is_not_said_of_the_next(self, tmp_path: Path) -> None:
        profile = profile_in("claude", tmp_path)
        prepare(profile, str(tmp_path))
        (tmp_path / "spool" / "Stop.1").write_text("{}")
        prepare(profile, str(tmp_path))
        assert reader_for(profile, str(tmp_path)).look(0) == []

    def test_without_a_folder_there_is_nothing_to_hear(self, tmp_path: Path) -> None:
        reader = reader_in("claude", tmp_path)
        shutil.rmtree(tmp_path / "spool")
        assert reader.look(0) == []


class TestSettingUp:
    def test_claude_gets_a_settings_file_whose_hooks_run(self, tmp_path: Path) -> None:
        prepared = prepare(profile_in("claude", tmp_path), str(tmp_path))
        flag, path = prepared.argv
        assert flag == "--settings"
        hooks = json.loads(Path(path).read_text())["hooks"]
        assert set(hooks) == set(EVENTS)
        for event, (entry,) in hooks.items():
            (hook,) = entry["hooks"]
            assert shlex.split(hook["command"])[-1] == event
        run(hooks["UserPromptSubmit"][0]["hooks"][0]["command"], b"{}")
        (sign,) = reader_for(profile_in("claude", tmp_path), str(tmp_path)).look(0)
        assert sign.state is AgentState.WORKING

    def test_a_command_with_settings_of_its_own_keeps_them(self, tmp_path: Path) -> None:
        for words in (("--settings", "mine.json"), ("--settings=mine.json",)):
            profile = Profile("mine", ("claude", *words), mode=Mode.INTERACTIVE)
            assert prepare(profile, str(tmp_path)).argv == ()

    def test_codex_gets_hooks_only_where_its_command_trusts_them(self, tmp_path: Path) -> None:
        """The flag would also trust the hooks of a repository, so it is never ours to give."""
        assert prepare(BUILT_IN["codex"], str(tmp_path)).argv == ()
        trusting = Profile(
            "codex",
            ("codex", "--dangerously-bypass-hook-trust"),
            mode=Mode.INTERACTIVE,
            stream=StreamFormat.CODEX,
        )
        words = prepare(trusting, str(tmp_path)).argv
        assert set(words[::2]) == {"-c"}
        settings = tomllib.loads("\n".join(words[1::2]))
        line = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
        run(line, b"{}")
        (sign,) = reader_for(trusting, str(tmp_path)).look(0)
        assert sign.turn_over

    def test_gemini_gets_defaults_that_hold_the_machines_own(self, tmp_path: Path) -> None:
        machine = tmp_path / "machine.json"
        theirs = {"hooks": [{"type": "command", "command": "theirs"}]}
        machine.write_text(json.dumps({"ui": {"theme": "x"}, "hooks": {"AfterAgent": [theirs]}}))
        variable = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
        profile = profile_in("gemini", tmp_path, **{variable: str(machine)})
        prepared = prepare(profile, str(tmp_path))
        written = json.loads(Path(prepared.env[variable]).read_text())
        assert written["ui"] == {"theme": "x"}
        assert written["hooks"]["AfterAgent"][0] == theirs
        assert len(written["hooks"]["AfterAgent"]) == 2
        assert "AfterModel" not in written["hooks"]
        machine.write_text("// not JSON")
        assert prepare(profile, str(tmp_path)).env == {}

    @pytest.mark.skipif(not shutil.which("node"), reason="node runs the plugin")
    def test_opencodes_plugin_leaves_its_events_and_nothing_else(self, tmp_path: Path) -> None:
        profile = profile_in("opencode", tmp_path)
        prepared = prepare(profile, str(tmp_path))
        config = prepared.env["OPENCODE_CONFIG_DIR"]
        recorded = SAMPLES / "opencode" / "permission.plugin.hooks.jsonl"
        events = [json.loads(line) for line in recorded.read_text().splitlines()]
        script = (
            f"import({json.dumps(f'{config}/plugin/mam.js')}).then(async (loaded) => {{"
            "const hooks = await loaded.MamStates({});"
            f"for (const event of {json.dumps(events)}) await hooks.event({{ event }});"
            "await hooks.event({}); })"
        )
        # The file is a module for opencode's runtime; to node this says so.
        Path(config, "plugin", "package.json").write_text('{"type": "module"}')
        done = subprocess.run(["node", "-e", script], capture_output=True, check=False, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        left = os.listdir(Spool(str(tmp_path)).path)
        # Of all the parts of its answer: that the tool began, and that it ended.
        assert len([name for name in left if name.startswith("message.part.updated")]) == 2
        signs = reader_for(profile, str(tmp_path)).look(0)
        told = (SAMPLES / "expected" / "opencode.channels.txt").read_text()
        for sign in signs:
            assert f"{sign.rule} " in told
        assert signs[-1].turn_over

    def test_a_plugin_folder_of_the_users_stays_theirs(self, tmp_path: Path) -> None:
        profile = profile_in("opencode", tmp_path, OPENCODE_CONFIG_DIR="/theirs")
        assert prepare(profile, str(tmp_path)).env == {}
        assert not reader_for(profile, str(tmp_path)).speaks_for_itself

    @pytest.mark.parametrize("name", ["aider", "shell"])
    def test_an_agent_without_a_channel_gets_nothing(self, name: str, tmp_path: Path) -> None:
        assert prepare(BUILT_IN[name], str(tmp_path)) == ((), {})
        reader = reader_for(BUILT_IN[name], str(tmp_path))
        reader.started(1)
        assert not reader.speaks_for_itself
        assert reader.look(0) == []
        assert reader.heard(b"\x1b]0;title\x07", 0) == []
        assert list(tmp_path.iterdir()) == []

    def test_a_program_is_known_by_its_name_where_no_stream_is_given(self, tmp_path: Path) -> None:
        mine = Profile("mine", ("/opt/bin/claude", "--model", "x"), mode=Mode.INTERACTIVE)
        assert prepare(mine, str(tmp_path)).argv[0] == "--settings"

    def test_nothing_is_written_outside_of_the_folder(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        home.mkdir()
        script = (
            "import sys; from mam_core.agents.channels import prepare, reader_for\n"
            "from mam_core.agents.profiles import BUILT_IN\n"
            "for profile in BUILT_IN.values():\n"
            "    prepare(profile, sys.argv[1]); reader_for(profile, sys.argv[1]).look(0)"
        )
        environ = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "xdg")}
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "ours")], env=environ, check=True
        )
        assert list(home.iterdir()) == []


class TestTheStatusFile:
    def test_is_found_below_what_was_started(self, tmp_path: Path) -> None:
        """A launcher may stand above the program."""
        profile = profile_in("claude", tmp_path)
        sessions = tmp_path / "config" / "sessions"
        sessions.mkdir(parents=True)
        script = 'echo \'{"status": "busy"}\' >"$1/$$.json"; echo on; read x; :'
        launcher = ["/bin/sh", "-c", f'sh -c {shlex.quote(script)} sh "$1"; :', "sh"]
        with subprocess.Popen(
            [*launcher, str(sessions)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as agent:
            assert agent.stdout is not None
            reader = reader_for(profile, str(tmp_path))
            reader.started(agent.pid)
            assert agent.stdout.readline() == b"on\n"
            assert [sign.rule for sign in reader.look(10)] == ["status busy"]
            agent.communicate(b"\n")

    def test_one_that_a_killed_program_left_is_not_believed(self, tmp_path: Path) -> None:
        write_status(tmp_path, {"status": "busy"})
        (path,) = (tmp_path / "config" / "sessions").iterdir()
        os.utime(path, (1, 1))
        assert reader_in("claude", tmp_path).look(10) == []

    @pytest.mark.parametrize("content", ["", "{", "[]", '"x"', '{"status": 7}', "[" * 50_000])
    def test_whatever_it_holds_is_no_trouble(self, content: str, tmp_path: Path) -> None:
        reader = reader_in("claude", tmp_path)
        write_status(tmp_path, {})
        (path,) = (tmp_path / "config" / "sessions").iterdir()
        path.write_text(content)
        assert reader.look(10) == []


class TestTheScanner:
    def test_finds_titles_and_reports_in_a_real_stream(self) -> None:
        data = (SAMPLES / "claude" / "permission.tmux.pane.raw").read_bytes()
        found = Scanner().feed(data)
        assert {report.code for report in found} == {0}
        assert {report.text.split(" ")[0] for report in found if report.text} <= {"✳", "⠂", "⠐"}

    @given(st.lists(st.integers(0, 8000), max_size=20), st.sampled_from(["permission", "slow"]))
    @settings(max_examples=50)
    def test_however_the_bytes_are_cut_it_finds_the_same(self, cuts: list[int], name: str) -> None:
        data = (SAMPLES / "claude" / f"{name}.tmux.pane.raw").read_bytes()
        marks = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
        scanner = Scanner()
        found = [
            report for start, end in pairwise(marks) for report in scanner.feed(data[start:end])
        ]
        assert found == Scanner().feed(data)

    @given(st.lists(st.binary(max_size=40)))
    def test_no_bytes_disturb_it(self, pieces: list[bytes]) -> None:
        scanner = Scanner()
        for piece in pieces:
            scanner.feed(piece)
        assert scanner.feed(b"\x18\x1b]0;still here\x07")[-1] == Report(0, "still here")

    @each_row("end", [b"\x07", b"\x1b\\"])
    @each_row("code", [0, 2, 7501])
    def test_knows_both_ends(self, code: int, end: bytes) -> None:
        data = b"\x1b]%d;one;two%s" % (code, end)
        assert Scanner().feed(data) == [Report(code, "one;two")]

    @each_row(
        "data",
        [
            b"\x1b]0;broken\x18off\x07",
            b"\x1b]0;broken\x1b[2Joff\x07",
            b"\x1b]9;4;1\x07",
            b"\x1b]00;x\x07",
            b"\x1b]0;" + b"x" * (MAX_REPORT_BYTES + 1) + b"\x07",
            b"\xc2\x9d0;not in UTF-8\x07",
        ],
    )
    def test_what_is_none_of_them_is_passed_over(self, data: bytes) -> None:
        assert Scanner().feed(data) == []

    def test_a_report_without_an_end_is_held_within_bounds(self) -> None:
        scanner = Scanner()
        scanner.feed(b"\x1b]0;")
        for _ in range(100):
            scanner.feed(b"x" * 65536)
        held = scanner._held
        assert held is not None
        assert len(held) <= MAX_REPORT_BYTES
        assert scanner.feed(b"\x07\x1b]0;next\x07") == [Report(0, "next")]

    def test_two_reports_follow_each_other_closely(self) -> None:
        data = b"\x1b]0;a\x1b\x1b]2;b\x1b\\\x1b]7501;state=done:app=codex\x1b\\"
        assert Scanner().feed(data) == [Report(2, "b"), Report(7501, "state=done:app=codex")]
