"""What is on disk of a session: strict when written, patient when read."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from mam_core.disk import Folder
from mam_core.errors import MamError, UnreadableRecord
from mam_core.operations.sessions import SessionState, by_session, is_ours, named, stand
from mam_core.presence import Announcements, Presence, worker_of
from mam_core.process_mark import ProcessMark
from mam_core.sessions import FOLDER, Session, SessionFolder, check_name, name_of
from mam_core.tmux.facts import BadSessionName, NoSuchSession, PaneFact, SessionExists, TmuxFailed
from mam_core.wiring import open_registry
from tests.support.rows import each_row

HOSTILE = ["", "-x", "a;b", "../x", "a.b", "a:b", "ä", "한국", "x" * 300, "a b", "a\n", ".a", "a/b"]


def session(name: str = "claude", **more: object) -> Session:
    known: dict[str, object] = {
        "name": name,
        "label": f"tmux:{name}",
        "agent": "shell",
        "mode": "exec",
        "workdir": "/work",
        "settings_from": "/work",
        "created_at": "2026-06-19T09:00:00Z",
        "created_by": "ann",
        "node": "here",
    }
    return Session(**{**known, **more})  # type: ignore[arg-type]  # fields by name, of any type


def pane(name: str = "claude", **more: object) -> PaneFact:
    facts = PaneFact(
        "%1", name, 4711, False, None, None, "", f"tmux:{name}", "a", "", 0, 80, 24, 0, 0
    )
    return facts._replace(**more)  # type: ignore[arg-type]  # fields by name, of any type


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    return SessionFolder(str(tmp_path / ".mam" / "jobs"))


class TestName:
    @each_row("name", HOSTILE)
    def test_that_is_no_plain_word_is_refused(self, folder: SessionFolder, name: str) -> None:
        """It would become a file, a branch and a target of tmux."""
        with pytest.raises(BadSessionName):
            check_name(name)
        with pytest.raises(BadSessionName):
            name_of(f"tmux:{name}")
        with pytest.raises(BadSessionName):
            folder.put(session()._replace(name=name))
        assert not os.path.exists(os.path.join(folder.path, f"{name}.json"))

    def test_is_what_follows_tmux_in_a_label(self) -> None:
        assert name_of("tmux:claude-a") == "claude-a"
        with pytest.raises(BadSessionName, match="say tmux:NAME"):
            name_of("claude-a")


class TestOnDisk:
    def test_it_comes_back_as_it_went_in(self, folder: SessionFolder) -> None:
        one = session(slots=3, worktree="/w", branch="mam/claude", repository="/r", base="1234")
        folder.put(one)
        assert folder.get("claude") == one
        assert folder.all() == ([one], [])

    def test_nobody_else_may_look(self, folder: SessionFolder) -> None:
        folder.put(session())
        place = Path(folder.path)
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert stat.S_IMODE((place / "claude.json").stat().st_mode) == 0o600

    def test_what_is_not_there_is_said(self, folder: SessionFolder) -> None:
        assert folder.all() == ([], [])
        with pytest.raises(NoSuchSession, match="no session claude on record"):
            folder.get("claude")
        folder.remove("claude")

    def test_a_damaged_file_is_a_row_and_keeps_nobody_from_the_others(
        self, folder: SessionFolder
    ) -> None:
        folder.put(session())
        place = Path(folder.path)
        good = session("other").to_dict()
        contents = {
            "empty": "",
            "half": '{"name": "half"',
            "list": "[]",
            "liar": json.dumps(good),
            "slots": json.dumps({**good, "name": "slots", "slots": "many"}),
            "label": json.dumps({**good, "name": "label", "label": "no label"}),
            "number": json.dumps({**good, "name": "number", "workdir": 7}),
            "lacks": json.dumps({"name": "lacks"}),
            "bad name": json.dumps({**good, "name": "bad name"}),
        }
        for name, text in contents.items():
            (place / f"{name}.json").write_text(text)
        (place / "link.json").symlink_to("/etc/passwd")
        (place / "folder.json").mkdir()
        os.mkfifo(place / "pipe.json")
        found, damaged = folder.all()
        assert [one.name for one in found] == ["claude"]
        assert {one.name for one in damaged} == {*contents, "link", "folder", "pipe"}
        assert all(one.error for one in damaged)
        with pytest.raises(UnreadableRecord, match="its slots is 'many'"):
            folder.get("slots")

    def test_keys_of_a_later_version_are_no_reason_to_stumble(self, folder: SessionFolder) -> None:
        folder.put(session())
        path = Path(folder.path, "claude.json")
        path.write_text(json.dumps({**session().to_dict(), "colour": "green"}))
        assert folder.get("claude") == session()

    def test_the_registry_takes_none_of_it_for_a_job(self, folder: SessionFolder) -> None:
        folder.put(session())
        with open_registry(folder.registry_path) as registry:
            registry.register([{"prompt": "p", "agent": "a", "agent_session": "tmux:claude"}])
            from mam_core.stores.base import Query

            jobs, unreadable = registry.store.find(Query())
        assert (len(jobs), unreadable) == (1, [])
        assert os.path.isdir(os.path.join(folder.registry_path, FOLDER))


class TestWorker:
    def test_is_known_by_its_mark_while_it_lives(self, folder: SessionFolder) -> None:
        folder.put(session())
        assert worker_of(folder, "claude") is None
        with Presence.announce(folder, "claude"):
            assert worker_of(folder, "claude") == ProcessMark.of(os.getpid())

    def test_keeps_a_second_one_out(self, folder: SessionFolder) -> None:
        folder.put(session())
        with Presence.announce(folder, "claude"), pytest.raises(SessionExists):
            Presence.announce(folder, "claude")
        with Presence.announce(folder, "claude"):
            pass

    @pytest.mark.parametrize("text", ["", "{}", "no JSON", '{"pid": 1}', '{"pid": "x"}'])
    def test_is_nobody_where_the_file_makes_no_sense(
        self, folder: SessionFolder, text: str
    ) -> None:
        folder.put(session())
        Path(folder.path, "claude.worker").write_text(text)
        assert worker_of(folder, "claude") is None

    def test_of_another_boot_is_nobody(self, folder: SessionFolder) -> None:
        folder.put(session())
        mark = ProcessMark.of(os.getpid())
        assert mark is not None
        old = {**mark.to_dict(), "boot_id": "another"}
        Path(folder.path, "claude.worker").write_text(json.dumps(old))
        assert worker_of(folder, "claude") is None


class TestAgain:
    """Whoever keeps the folder reads a file once, and again when it is another."""

    def reads(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        names: list[str] = []
        real = Folder.read

        def read(self: Folder, name: str, limit: int) -> tuple[bytes, os.stat_result]:
            names.append(name)
            return real(self, name, limit)

        monkeypatch.setattr(Folder, "read", read)
        return names

    def test_records_that_did_not_change_are_kept(
        self, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder.put(session("a"))
        folder.put(session("b"))
        Path(folder.path, "bad.json").write_text("{")
        before = folder.all()
        names = self.reads(monkeypatch)
        assert folder.all() == before
        assert names == ["bad.json"], "what is damaged may be mended in place"
        folder.put(session("b", slots=2))
        assert [one.slots for one in folder.all()[0]] == [1, 2]
        assert names.count("b.json") == 1
        assert "a.json" not in names
        folder.remove("a")
        assert [one.name for one in folder.all()[0]] == ["b"]
        folder.put(session("a"))
        assert [one.name for one in folder.all()[0]] == ["a", "b"]

    def test_and_so_are_the_marks_of_workers(
        self, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder.put(session("a"))
        announcements = Announcements(folder)
        assert announcements.of(["a"]) == {}
        names = self.reads(monkeypatch)
        with Presence.announce(folder, "a"):
            for _ in range(3):
                assert announcements.of(["a"])["a"].mark == ProcessMark.of(os.getpid())
            assert names == ["a.worker"]
            Path(folder.path, "a.worker").write_text("{}")
            assert announcements.of(["a"]) == {}
        folder.remove("a")
        assert announcements.of(["a"]) == {}


class TestState:
    """H10: a session that is gone from tmux is shown as that, and an error is no death."""

    def states(self, folder: SessionFolder, *panes: PaneFact) -> dict[str, str]:
        return {one.name: one.words for one in stand(folder, lambda: list(panes), "here")}

    def test_is_what_tmux_says_of_its_pane(self, folder: SessionFolder) -> None:
        for name in ("alive", "gone", "dead", "killed", "stopping", "stopped", "namesake"):
            stopped = "2026-06-19T10:00:00Z" if name.startswith("stop") else None
            folder.put(session(name, stopped_at=stopped))
        assert self.states(
            folder,
            pane("alive"),
            pane("dead", dead=True, exit_code=3),
            pane("killed", dead=True, exit_signal=9),
            pane("stopping"),
            pane("stopped", dead=True, exit_code=0),
            pane("namesake", label=""),
            pane("foreign", label=""),
            pane("lost file"),
        ) == {
            "alive": "alive",
            "gone": "gone",
            "dead": "dead (3)",
            "killed": "dead (signal 9)",
            "stopping": "stopping",
            "stopped": "stopped",
            "namesake": "gone",
            "lost file": "unrecorded",
        }

    def test_is_unknown_when_tmux_cannot_be_asked(self, folder: SessionFolder) -> None:
        folder.put(session())
        folder.put(session("elsewhere", node="there"))

        def panes() -> list[PaneFact]:
            raise TmuxFailed("tmux did not answer within 10 s")

        notes = {one.name: (one.state, one.note) for one in stand(folder, panes, "here")}
        assert notes == {
            "claude": (SessionState.UNKNOWN, "tmux did not answer within 10 s"),
            "elsewhere": (SessionState.UNKNOWN, "it is on there"),
        }

    def test_a_pane_of_another_worker_is_a_namesakes(self, folder: SessionFolder) -> None:
        worker = ProcessMark.of(os.getpid())
        assert is_ours(session(), pane(pid=os.getpid()), worker)
        assert not is_ours(session(), pane(pid=1), worker)
        assert not is_ours(session(), pane(label="tmux:other"), None)

    def test_of_a_session_that_somebody_split_our_pane_counts(self) -> None:
        panes = [pane(pane_id="%1", label=""), pane(pane_id="%2")]
        assert by_session(panes)["claude"].pane_id == "%2"
        assert by_session(reversed(panes))["claude"].pane_id == "%2"

    def test_a_pool_is_named_by_its_label(self, folder: SessionFolder) -> None:
        for name in ("pool-1", "pool-2"):
            folder.put(session(name, label="tmux:pool"))
        folder.put(session("pool-3"))
        everyone = stand(folder, list, "here")
        assert [one.name for one in named(everyone, "pool")] == ["pool-1", "pool-2"]
        assert [one.name for one in named(everyone, "pool-3")] == ["pool-3"]
        assert named(everyone, "poo") == []


def test_whoever_changes_sessions_is_alone_and_sweeps_up(folder: SessionFolder) -> None:
    folder.put(session())
    left = Path(folder.path, ".claude.json.1234abcd.tmp")
    left.write_text("{")
    with folder.changing():
        assert not left.exists()
        other = SessionFolder(folder.registry_path)
        assert other.get("claude") == session()  # reading waits for nobody
    assert isinstance(NoSuchSession(), MamError)
