"""The ``mam.toml`` of a demonstration: its agents, and times that are short enough to be watched.

A job that the operator registers himself needs no more than a prompt: agent and label have
defaults, and a prompt without steps is worked on, too.
"""

from __future__ import annotations

import json
import os
import sys
from typing import NamedTuple

CODER, REVIEWER, LIMITED = "sim-coder", "sim-reviewer", "sim-limited"

#: Only one of these runs at a time.
GROUP = "nightly"

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "simulated.py")


class Player(NamedTuple):
    """A session of the demonstration."""

    name: str
    agent: str
    how_many: int = 1
    slots: int = 1

    @property
    def label(self) -> str:
        return f"tmux:{self.name}"


PLAYERS = (
    Player("coder", CODER, how_many=2),
    Player("reviewer", REVIEWER, slots=3),
    Player("limited", LIMITED),
)

LABELS = {player.agent: player.label for player in PLAYERS}


def text(root: str) -> str:
    """The whole file. `root` stands in every agent's command line, so that it tells whose it is."""
    # -I and -S: an agent needs nothing of ours, and starts in a third of the time.
    program = [sys.executable, "-I", "-S", _PROGRAM]
    both = [*program, "--input-format", "stream-json", root]
    return f"""\
# Written by `mam demo` for its throw-away registry. Every agent here is simulated.
[defaults]
agent = "{CODER}"
agent_session = "{LABELS[CODER]}"
timeout_sec = 900
idle_timeout_sec = 60
retry_sec = 6
heartbeat_sec = 3
lease_sec = 15
sweep_sec = 2
grace_sec = 1

[groups.{GROUP}]
slots = 1

[agents.{CODER}]
command = {_words([*program, root])}

[agents.{LIMITED}]
command = {_words([*program, root])}

[agents.{REVIEWER}]
command = {_words(both)}
mode = "stream"
stream = "stream-json"

[templates.simulated-review]
agent = "{REVIEWER}"
agent_session = "{LABELS[REVIEWER]}"
"""


def _words(command: list[str]) -> str:
    """A list of texts in TOML, whose escapes are those of JSON."""
    return json.dumps(command, ensure_ascii=False)
