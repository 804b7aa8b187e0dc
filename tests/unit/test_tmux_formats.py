"""Answers about panes are read by their lengths, and what does not fit is no answer."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam_core.tmux.command import failure, literal, word
from mam_core.tmux.deaths import read_death
from mam_core.tmux.facts import BadSessionName, Death, NoServer, PaneLabel, TmuxFailed
from mam_core.tmux.formats import capture_words, read_capture, read_panes
from mam_core.tmux.names import checked, socket_name, socket_path
from tests.support.rows import each_row

_MARK = "0123456789abcdef"


def answer(texts: list[bytes], pane_id: str = "%3", numbers: str = "7,1,,9,2,80,24,5,6") -> bytes:
    lengths = ",".join(str(len(text)) for text in texts)
    return f"{_MARK} {pane_id} {numbers} {lengths} ".encode() + b"".join(texts) + b"\n"


@given(st.lists(st.lists(st.binary(max_size=20), min_size=5, max_size=5), max_size=4))
def test_any_texts_are_read_as_they_are(panes: list[list[bytes]]) -> None:
    found = read_panes(b"".join(map(answer, panes)), _MARK)
    assert len(found) == len(panes)
    for pane, texts in zip(found, panes, strict=True):
        shown = [text.decode("utf-8", "backslashreplace") for text in texts]
        assert [pane.session, pane.title, pane.label, pane.agent, pane.job_id] == shown
        assert (pane.pid, pane.dead, pane.exit_code, pane.exit_signal) == (7, True, None, 9)
        assert (pane.attempt, pane.width, pane.height) == (2, 80, 24)


@given(st.binary(max_size=80), st.integers(0, 60))
def test_a_damaged_answer_is_nothing_worse_than_unknown(junk: bytes, at: int) -> None:
    whole = answer([b"s", b"title", b"tmux:s", b"a", b""])
    damaged = whole[:at] + junk
    with suppress(TmuxFailed):
        read_panes(damaged + whole, _MARK)


def test_an_answer_with_another_mark_is_not_believed() -> None:
    with pytest.raises(TmuxFailed):
        read_panes(answer([b"s"] * 5), "another")
    about = f"{_MARK} %3 1 2 a title with spaces".encode()
    assert read_capture([b"x"], about, "%3", _MARK).title == "a title with spaces"
    for wrong in (b"", about.replace(b"%3", b"%4"), about.replace(b" 1 2", b" x 2")):
        with pytest.raises(TmuxFailed):
            read_capture([b"x"], wrong, "%3", _MARK)
    with pytest.raises(TmuxFailed):
        read_capture([b"x"], about, "%3", "another")


@each_row("pane_id", ["", "%", "3", "%3;x", "=a:", "%3 ", "{last}", "%３"])
def test_only_a_pane_id_is_a_target(pane_id: str) -> None:
    with pytest.raises(TmuxFailed, match="no pane"):
        capture_words(pane_id, _MARK, colours=False, lines_back=0)


@given(st.binary(max_size=80))
def test_a_line_of_deaths_is_read_or_passed_over(line: bytes) -> None:
    death = read_death(line)
    assert death is None or death.label


def test_a_line_of_deaths() -> None:
    line = b"%3\t\t9\t1700000000\t2\tjob1\ttmux:a\ta-1"
    assert read_death(line) == Death("%3", "a-1", "tmux:a", "job1", 2, None, 9, 1700000000.0)
    assert read_death(line.replace(b"tmux:a", b"")) is None
    assert read_death(line + b"\tmore") is None
    assert read_death(line.replace(b"%3", b"x")) is None


def test_what_is_written_on_a_pane_is_read_back() -> None:
    for jobs in ([], [("a", 1)], [("a", 1), ("b-c", 12)]):
        assert PaneLabel.of(jobs).jobs == tuple(jobs)
    assert PaneLabel("a b/ /3 c/x d/٣ e/2", 0).jobs == (("e", 2),)


def test_a_semicolon_at_the_end_and_a_format_are_kept_from_tmux() -> None:
    assert [word(text) for text in ("a;", "a", ";", "a\\;")] == ["a\\;", "a", "\\;", "a\\\\;"]
    assert literal("#(id) ## #[x") == "##(id) #### #[x"


def test_the_socket_is_of_the_registrys_real_path(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 28."""
    folder = tmp_path_factory.mktemp("x")
    real, link = folder / "jobs", folder / "link"
    real.mkdir()
    link.symlink_to(real)
    name = socket_name(str(real))
    assert name == socket_name(str(link))
    assert len(name) == len("mam-") + 8
    assert name != socket_name(str(folder))
    assert socket_name(str(real), "mine") == "mine"
    with pytest.raises(BadSessionName):
        socket_name(str(real), "/tmp/x")
    monkeypatch.setenv("TMUX_TMPDIR", str(folder))
    assert socket_path("x").startswith(f"{folder}/tmux-")


@each_row("name", ["claude", "claude-a", "_x", "a_b+c@d", "한글", "é1", "x" * 64])
def test_names_that_tmux_keeps(name: str) -> None:
    assert checked(name) == name


@pytest.mark.parametrize(
    "said", ["no server running on x", "no sessions", "no current target", "server exited"]
)
def test_a_server_that_is_going_is_no_server(said: str) -> None:
    assert isinstance(failure(said), NoServer)
