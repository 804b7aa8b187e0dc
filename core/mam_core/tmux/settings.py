"""How our tmux server is set up: its own configuration, and what every pane of ours is given.

The server never reads the user's ``~/.tmux.conf``, and nothing here touches any other server.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from mam_core.locations import ATTEMPT_VARIABLES
from mam_core.tmux.command import literal

#: Set on a server that runs with this configuration.
SERVER_MARK = "@mam_server"

#: Set on a session that we started, with its label; without it a session is never ended.
SESSION_MARK = "@mam"

#: The server starts with these alone, so that no secret stands in the environment of a process
#: that outlives every command. A session has all of its spawner's environment: tmux's client
#: hands that over through the socket, where no other user sees it (see `inherited`).
SERVER_ENVIRONMENT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMUX_TMPDIR", "TZ"),
        *("LANG", "LC_ALL", "LC_CTYPE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TERMINFO"),
    }
)

#: What a session must not have of the shell that it was spawned from: the size of another
#: terminal, another tmux, and the job that the spawner may itself be the agent of.
NOT_INHERITED = (
    *("COLUMNS", "LINES", "OLDPWD", "TMUX", "TMUX_PANE"),
    *ATTEMPT_VARIABLES,
    "MAM_ATTEMPT_TOKEN",  # or a session that an agent spawns would be ended with its attempt
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def inherited(environ: Iterable[str]) -> str:
    """The names that tmux copies from the client that spawns, for ``update-environment``.

    All of them: else a session would have what the shell had that happened to start the server.
    One by one, because tmux 3.3 takes only the first variable that a pattern fits.
    """
    wanted = (name for name in environ if _NAME.fullmatch(name) and name not in NOT_INHERITED)
    return " ".join(sorted(wanted))


CONFIGURATION = f"""\
# Written by mam for its own tmux server; changes are overwritten. `[tmux] socket` in mam.toml
# names another server.
set -g {SERVER_MARK} 1
# Until its first session is there; then it is switched on, and the server goes with the last one.
set -s exit-empty off
set -g remain-on-exit on
set -g allow-rename off
set -g automatic-rename off
# For people who attach.
set -s escape-time 10
set -s focus-events on
set -s extended-keys on
set -s set-clipboard external
if-shell 'infocmp tmux-256color' {{
  set -s default-terminal tmux-256color
}} {{
  set -s default-terminal screen-256color
}}
set -g mouse on
set -g history-limit 20000
set -g status-interval 5
set -g status-style 'bg=default,fg=default,reverse'
set -g status-left-length 60
set -g status-left ' #{{session_name}} #{{?@agent,(#{{@agent}}) ,}}'
set -g status-right-length 100
set -g status-right '#{{?@job_id,job #{{@job_id}}#{{?@attempt, attempt #{{@attempt}},}},no job}}'
set -ag status-right ' | #{{prefix}} d: leave it running'
set -g window-status-format ''
set -g window-status-current-format ''
set -g set-titles on
set -g set-titles-string 'mam: #{{session_name}}'
"""

# A text that reaches the shell of the hook stands in single quotes, and loses what could end
# them in any shell. Our own labels and ids have none of that, so they arrive as they are.
_DANGEROUS = "[\x01-\x1f\x7f'\\\\\\\\!]"
_DEATH = "\t".join(
    (
        "#{hook_pane}",
        *(
            f"#{{s/[^0-9]//:{name}}}"
            for name in ("pane_dead_status", "pane_dead_signal", "pane_dead_time", "@attempt")
        ),
        *(f"#{{s/{_DANGEROUS}/?/:{name}}}" for name in ("@job_id", "@session", "session_name")),
    )
)


def death_hook(path: str) -> str:
    """The tmux command that adds a line to the file at `path` when a pane's process ends."""
    line = f"printf '%s\\n' '{_DEATH}' >> {literal(shlex.quote(path))}"
    quoted = line.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'run-shell -b "{quoted}"'
