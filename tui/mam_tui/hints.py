"""What stands where nothing is: why it is empty, and what to do next."""

from __future__ import annotations

from mam_core.board.why import Help
from mam_tui.actions import ACTIONS, key_of
from mam_tui.desk import Desk
from mam_tui.widgets.key_bar import key_name

_NO_JOBS = """\
there are no jobs yet

{new}  makes the first one
{demo}  shows how it looks with some: simulated agents, and nothing of it stays
mam register --agent claude-code --agent-session tmux:claude --prompt …  does it from a shell"""

_FIRST = """\
{help}  the keys that are valid here
{command}  commands, ^p everything by name
{new}  a new job, {spawn} a session that runs jobs
{demo}  a demonstration, while there are no jobs
1 2 …  the views"""


def help_key(desk: Desk, help: Help) -> str:
    """The operator's key for what helps; empty: there is none."""
    key = key_of(ACTIONS[help.action], desk) if help.action else ""
    return key_name(key) if key else ""


def first_hint(desk: Desk) -> str:
    """Once, at the first run; it goes by itself, and no key waits for it."""
    return _FIRST.format_map(_Names(desk))


def why_empty(desk: Desk, *, loading: bool) -> str:
    """Of a board that shows no job."""
    if loading:
        return "reading the registry …"
    if desk.board.rows:
        return "no job fits the filter\n\n{back}  shows all of them".format_map(_Names(desk))
    return _NO_JOBS.format_map(_Names(desk))


class _Names(dict[str, str]):
    """The key of each action as people write it; an action without a key by its command."""

    def __init__(self, desk: Desk) -> None:
        for action in ACTIONS.values():
            key = key_of(action, desk)
            self[action.name] = key_name(key) if key else f":{action.name}"
