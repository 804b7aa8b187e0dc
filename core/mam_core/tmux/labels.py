"""What is written on a pane: the job and the attempt that it works on, and a title."""

from __future__ import annotations

from mam_core.tmux.command import literal, word
from mam_core.tmux.formats import checked_pane

#: tmux shows it in one line, and refuses a title with a control character in it.
_LONGEST_TITLE = 200


def label_words(
    pane_id: str, job_id: str | None, attempt: int | None, title: str | None
) -> list[str]:
    """The tmux commands for it, all or none; None leaves a word as it is, "" and 0 clear it."""
    target = ["-t", checked_pane(pane_id)]
    commands = []
    if job_id is not None:
        commands.append(["set-option", "-p", *target, "@job_id", word(job_id)])
    if attempt is not None:
        commands.append(["set-option", "-p", *target, "@attempt", str(attempt) if attempt else ""])
    if title is not None:
        shown = "".join(c if c.isprintable() else " " for c in title)[:_LONGEST_TITLE]
        commands.append(["select-pane", *target, "-T", word(literal(shown))])
    return [part for command in commands for part in (*command, ";")][:-1]
