"""What tmux is asked about a pane, and how its answer is read.

Titles and labels may hold anything, also line ends and what looks like the next
answer. So each text is announced with its length in bytes, and read by that length.
"""

from __future__ import annotations

from collections.abc import Sequence

from mam_core.tmux.facts import Capture, PaneFact, TmuxFailed

_NUMBERS = (
    "pane_pid",
    "pane_dead",
    "pane_dead_status",
    "pane_dead_signal",
    "@attempt",
    "pane_width",
    "pane_height",
    "session_created",
    "window_activity",
)
_TEXTS = ("session_name", "pane_title", "@session", "@agent", "@job_id")

#: The longest answer about one pane's texts that is believed.
_TEXT_LIMIT = 1 << 20


def panes_format(mark: str) -> str:
    """For ``list-panes -F``; every answer begins with `mark`, which no pane can know."""
    # Anybody may set @attempt to a text: only its digits are taken, and it moves no other field.
    numbers = ",".join(
        f"#{{s/[^0-9]//:{name}}}" if name.startswith("@") else f"#{{{name}}}" for name in _NUMBERS
    )
    lengths = ",".join(f"#{{n:{name}}}" for name in _TEXTS)
    texts = "".join(f"#{{{name}}}" for name in _TEXTS)
    return f"{mark} #{{pane_id}} {numbers} {lengths} {texts}"


def read_panes(answer: bytes, mark: str) -> list[PaneFact]:
    """Every pane of an answer to `panes_format`."""
    panes = []
    at = 0
    while at < len(answer):
        pane, at = _read_pane(answer, at, mark.encode())
        panes.append(pane)
    return panes


def _read_pane(answer: bytes, at: int, mark: bytes) -> tuple[PaneFact, int]:
    try:
        end = at
        for _ in range(4):
            end = answer.index(b" ", end) + 1
        said_mark, pane_id, said_numbers, said_lengths = answer[at : end - 1].split(b" ")
        numbers = [int(word) if word else None for word in said_numbers.split(b",")]
        lengths = [int(word) for word in said_lengths.split(b",")]
        pid, dead, status, signal, attempt, width, height, created, activity = numbers
    except ValueError:
        raise _strange() from None
    texts = []
    for length in lengths:
        if length > _TEXT_LIMIT:
            raise _strange()
        texts.append(text(answer[end : end + length]))
        end += length
    if said_mark != mark or len(texts) != len(_TEXTS) or answer[end : end + 1] not in (b"\n", b""):
        raise _strange()
    session, title, label, agent, job_id = texts
    pane = PaneFact(
        pane_id=pane_id.decode("ascii", "replace"),
        session=session,
        pid=pid or 0,
        dead=bool(dead),
        exit_code=status,
        exit_signal=signal,
        title=title,
        label=label,
        agent=agent,
        job_id=job_id,
        attempt=attempt or 0,
        width=width or 0,
        height=height or 0,
        created=float(created or 0),
        activity=float(activity or 0),
    )
    return pane, end + 1


def capture_words(pane_id: str, mark: str, *, colours: bool, lines_back: int) -> list[str]:
    """The commands that show a pane: its lines, then one line about them."""
    checked_pane(pane_id)
    flags = ["-e"] if colours else []
    if lines_back > 0:
        flags += ["-S", f"-{lines_back}"]
    # Not the id itself: a `%` in a message is for strftime.
    about = f"{mark} #{{pane_id}} #{{cursor_x}} #{{cursor_y}} #{{pane_title}}"
    return [
        *("capture-pane", "-p", *flags, "-t", pane_id),
        ";",
        *("display-message", "-p", "-t", pane_id, about),
    ]


def read_capture(lines: Sequence[bytes], about: bytes, pane_id: str, mark: str) -> Capture:
    """The answer to `capture_words`."""
    words = about.split(b" ", 4)
    if len(words) != 5 or words[:2] != [mark.encode(), pane_id.encode()]:
        raise _strange()
    try:
        cursor = int(words[2] or 0), int(words[3] or 0)
    except ValueError:
        raise _strange() from None
    return Capture(tuple(map(text, lines)), cursor, text(words[4]))


def checked_pane(pane_id: str) -> str:
    """Only ``%`` and digits ever get into a command; the rest of tmux's targets match loosely."""
    if pane_id[:1] != "%" or not pane_id[1:].isdecimal() or not pane_id.isascii():
        raise TmuxFailed(f"{pane_id!r} is no pane")
    return pane_id


def text(data: bytes) -> str:
    """Bytes that are no UTF-8 are kept, visibly: pane text may be anything."""
    return data.decode("utf-8", "backslashreplace")


def _strange() -> TmuxFailed:
    return TmuxFailed("tmux gave an answer that cannot be read")
