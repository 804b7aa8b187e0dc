"""Promise 7, in a real terminal: whatever strangers wrote is text, in every view, to the last byte.

The console runs as a person runs it; every view, tab and form is walked through, and then every
byte that it ever wrote is taken apart: only what Textual itself says to a terminal may be there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from mam_core.agents.signs import AgentState, Channel, Sign
from mam_core.operations.preferences import Preferences
from mam_core.registry import Registry
from mam_core.safe_text import cell_width, safe
from tests.console.detail_story import output_of
from tests.console.hostile.payloads import LONG, MARK, everything, file_name, one_line, printable
from tests.console.session_story import in_terminal
from tests.support.brokers import nothing_left
from tests.support.patience import eventually
from tests.support.sessions import SessionShop
from tests.support.stream import Kind, Piece, pieces
from tests.support.terminal import Terminal, terminal

SIZE = (160, 45)
TABS = ("timeline", "tail", "pane", "record", "artifacts", "output", "diff", "why")

#: What Textual 8 says to a terminal by itself: colours, places, modes, the shape of the mouse.
_MODES = ("1000", "1003", "1004", "1006", "1015", "1049", "2004", "2026", "2048", "25", "7")
ALLOWED = (
    {"CSI m", "CSI H", "CSI J", "CSI K", "CSI ?$p", "CSI >u", "CSI <u", "CSI ?u", "OSC 22"}
    | {f"CSI ?{mode}{switch}" for mode in _MODES for switch in "hl"}
    | {"control '\\r'", "control '\\n'"}
)


@pytest.fixture
def window(shop: SessionShop) -> Iterator[Terminal]:
    Preferences(hint_seen=True, last_job={"group": one_line()[:150]}).save()
    with nothing_left(shop.folder):
        with terminal(shop.folder, SIZE) as made:
            yield made
        shop.tmux("kill-server")


def test_everything_that_strangers_write_is_text(shop: SessionShop, window: Terminal) -> None:
    live = in_terminal(shop)
    shop.settle()
    jobs = [*_written_by_strangers(shop), _in_a_pane(shop, live)]
    window.run("mam")
    window.until("mam board", *jobs)
    for job_id in jobs:
        _walked(window, job_id)
    _asked_about(window, jobs)
    _seen_in_every_view(window, jobs)
    _as_it_was(window)
    _typed(window)
    window.press("C-q")
    window.until_prompt()
    is_only_text(window.written())


# -- the doors -------------------------------------------------------------------------------------


def _written_by_strangers(shop: SessionShop) -> list[str]:
    """Records, events, output, files: a running job, one that waits, a long one, two odd files."""
    workdir = shop.workdir / file_name("dir")
    workdir.mkdir()
    (workdir / file_name("there")).write_text(everything())
    fields = {
        "agent": printable(),
        "agent_session": "tmux:nobody",
        "group": printable(),
        "model": printable(),
        "workdir": str(workdir),
        "expected_artifacts": [file_name("there"), file_name("missing")],
        "validate": one_line().replace("\x00", ""),
    }
    running, waiting, long = (
        job.job_id
        for job in shop.registry.register(
            [
                {**fields, "prompt": everything(), "priority": 9},
                {**fields, "prompt": everything()},
                {**fields, "prompt": LONG, "agent_session": f"tmux:{printable()}"},
            ],
            allow_collision=True,
        )
    )
    claimed = shop.registry.claim("tmux:nobody")
    assert claimed is not None
    assert claimed.job_id == running
    _events(shop.registry, running)
    output_of(shop.registry, running, 1).write_bytes(
        everything(utf8=False).encode("utf-8", "surrogatepass")
        + b"\n\xff\xfe\x00\x9b31m\x9d0;PWNED\x07 bytes\n"
        + LONG.encode()
    )
    record = json.loads((shop.path / f"{waiting}.json").read_bytes())
    record |= {"detail": one_line(utf8=False), "node": one_line(), "PWNED\x1b[31m": one_line()}
    record |= {"after": [running]}
    (shop.path / f"{waiting}.json").write_text(json.dumps(record))
    (shop.path / f"{file_name('odd')}.json").write_text(everything())
    (shop.path / "broken\x1b[31m.json").write_text("{")
    return [running, waiting, long]


def _events(registry: Registry, job_id: str) -> None:
    text = everything()
    sign = Sign(AgentState.WAITING, Channel.STREAM, text[:200], 0.0, text)
    registry.publish(job_id, "progress", detail=text, data={text: text, "b": [text, {text: text}]})
    registry.publish(job_id, "log", detail=LONG[:60_000])
    registry.publish(job_id, "state", detail=text, data=sign.to_dict())


def _in_a_pane(shop: SessionShop, agent: str) -> str:
    """An agent in a terminal of its own, which writes and names itself as it likes, and asks."""
    shop.spawn("live", agent)
    # Without those that its own terminal would never come back from, and without a report.
    lines = [f"say {line}" for line in everything().split("\n") if not _blinds(line)]
    prompt = "\n".join([*lines, f"ask May I do {printable()} \x1b[31m\u202e{MARK}?", "work 60"])
    job_id = shop.add(agent, prompt, agent_session="tmux:live")
    eventually(lambda: "May I do" in shop.tmux("capture-pane", "-p", "-t", "=live:"), "it asks")
    return job_id


def _blinds(line: str) -> bool:
    return any(word in line for word in ("\x1b[2J", "\x1bP", "\x1bc", "\x9b", "7501"))


# -- the walk --------------------------------------------------------------------------------------


def _walked(window: Terminal, job_id: str) -> None:
    """Every tab beside the table, then the job on the whole screen."""
    _command(window, f"job {job_id}")
    for tab in TABS:
        _still(window, f"[{tab}]", f"{job_id}  ")
        window.press("]")
    _looked_into(window, "Enter", f"board > {job_id}")


def _asked_about(window: Terminal, jobs: list[str]) -> None:
    """Questions, forms, the log, the other views."""
    running, waiting, _, live = jobs
    _command(window, f"job {running}")
    _looked_into(window, "c", "Cancel job")
    _looked_into(window, "?", "Keys that are valid")
    _command(window, f"job {waiting}")
    _looked_into(window, "E", f"Change job {waiting}")
    _command(window, f"job {live}")
    _looked_into(window, "A", f"Job {live} asks")
    _looked_into(window, "m", "Say to the agent")
    _looked_into(window, "s", "Start agent sessions")


def _seen_in_every_view(window: Terminal, jobs: list[str]) -> None:
    """The numbered ones, two jobs side by side, and the palette over one of them."""
    running, waiting, _, live = jobs
    for key, *words in (
        ("2", "mam sessions 1"),
        ("3", "mam fleet", "live"),
        ("4", "mam attention", running, live),
        ("5", "mam gantt", "by session", "live"),
        ("6", "mam charts"),
        ("8", "mam graph 2", waiting),
        ("7", "mam history 4 jobs", running, live),
    ):
        window.press(key)
        _still(window, *words)
    for job_id in (running, live):
        window.press("/")
        window.type(job_id)
        window.press("Enter")
        _still(window, "showing 1 of 4", job_id)
        window.press("Space", "Escape")
        window.until_gone("showing 1 of 4")
    _looked_into(window, "=", "history > compare")
    window.press("o")
    _still(window, "[acts]", "register")
    window.press("o")
    _looked_into(window, "C-p", "Search for commands")
    window.press("1")
    _still(window, "mam board")


def _as_it_was(window: Terminal) -> None:
    window.press("t")
    _still(window, "PAST")
    for key, words in (("Left", "PAST"), ("2", "mam sessions"), ("5", "mam gantt"), ("1", "board")):
        window.press(key)
        _still(window, "PAST", words)
    window.press("Escape")
    window.until_gone("PAST")


def _typed(window: Terminal) -> None:
    """What is pasted into lines and forms, and what is said about it."""
    pasted = one_line()
    window.press("/")
    window.paste(pasted)
    _still(window, MARK, "showing 0 of")
    window.press("Escape")
    window.until_gone("showing 0 of")
    _still(window)
    if "text  state:" in window.screen():  # it is empty now, and still open
        window.press("Escape")
        window.until_gone("text  state:")
    window.type(":job ")
    window.paste(f"{MARK}\x9d0;x\x9c[b]\u202e")
    _still(window, ": job ", MARK)
    window.press("Enter")
    _still(window, "not here")
    window.press("n")
    _still(window, "New job")
    window.paste(everything())
    _still(window, "New job", MARK)
    window.press("Tab")
    window.paste(pasted[:180])
    _still(window, "New job", MARK)
    window.press("C-s")
    _still(window, "it must not stay empty")
    window.press("Escape")
    _still(window, "esc again leaves")
    window.press("Escape")
    window.until_gone("New job")
    window.press("@")
    _still(window)


def _looked_into(window: Terminal, key: str, words: str) -> None:
    """What the key opens, and out of it again."""
    window.press(key)
    _still(window, words)
    window.press("Escape")
    window.until_gone(words)


def _command(window: Terminal, line: str) -> None:
    window.type(f":{line}")
    window.until(f": {line}")
    window.press("Enter")
    window.until_gone(f": {line}")


def _still(window: Terminal, *words: str) -> None:
    """These are seen, nothing moves any more, and every line is as wide as the terminal."""
    window.until(*words)
    before: list[str] = []

    def stands() -> bool:
        nonlocal before
        was, before = before, window.lines()
        return was == before

    eventually(stands, f"it stands still with {words}")
    wrong = [line for line in before if cell_width(line) != SIZE[0]]
    assert not wrong, f"{[cell_width(line) for line in wrong]} cells: {wrong!r}"


# -- the bytes -------------------------------------------------------------------------------------


def is_only_text(written: bytes) -> None:
    end = written.rindex(b"\x1b[?1049l")
    ours = written[written.index(b"\x1b[?1049h") : end]
    found = list(pieces(ours))
    assert MARK in ours.decode("utf-8", "replace")
    foreign = {piece.name: piece.text for piece in found if not _is_ours(piece)}
    assert not foreign
    texts = {piece.text for piece in found if piece.kind is Kind.TEXT}
    assert not {text for text in texts if safe(text) != text}


def _is_ours(piece: Piece) -> bool:
    if piece.kind is Kind.TEXT:
        return True
    if piece.kind is Kind.STRING:  # the shape of the mouse
        return piece.name == "OSC 22" and piece.text[5:-2].replace("-", "").isalpha()
    return piece.name in ALLOWED
