"""A value for every setting that one could write down: its default, else one that makes sense.

Shared by the file that `mam init` writes and by the reference, so that both show
what the reader of ``mam.toml`` accepts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mam_core.config.kinds import Kind, Setting
from mam_core.config.loading import KeyPath

#: For settings without a default, by their table and key. Names within a table do not matter.
_EXAMPLES: Mapping[tuple[str, str], Any] = {
    ("defaults", "agent"): "claude-code",
    ("defaults", "agent_session"): "tmux:claude",
    ("defaults", "model"): "opus",
    ("defaults", "group"): "agents",
    ("defaults", "memory_max"): "8G",
    ("defaults", "max_cost"): 2.5,
    ("defaults", "max_tokens"): 2_000_000,
    ("store", "password_file"): "~/.mam-db",
    ("store", "registry_dir"): ".mam/jobs",
    ("broker", "host"): "broker.example",
    ("broker", "username"): "mam",
    ("broker", "password_file"): "~/.mam-broker",
    ("broker", "ca_certs"): "ca.pem",
    ("broker", "certfile"): "mam.pem",
    ("broker", "keyfile"): "mam.key",
    ("tmux", "socket"): "mam-shared",
    ("agents", "command"): ["my-agent", "--headless", "{options}"],
    ("agents", "env"): {"MY_AGENT_MODE": "quiet"},
    ("agents", "needs"): ["MY_AGENT_KEY"],
    ("agents", "model_flag"): "--model",
    ("agents", "resume"): ["--resume", "{session}"],
    ("agents", "may"): ["cancel", "answer"],
    ("groups", "slots"): 4,
    ("groups", "min"): 1,
    ("groups", "max"): 8,
    ("groups", "memory"): "2G",
    ("groups", "cpu"): 1,
    ("templates", "agent"): "claude-code",
    ("templates", "agent_session"): "tmux:claude",
    ("templates", "prompt"): "Review the last commit and write what you find to review.md",
    ("templates", "expected_artifacts"): ["review.md"],
    ("templates", "validate"): "test -s review.md",
    ("templates", "timeout_sec"): 1800,
    ("notify", "command"): ["notify-send", "mam"],
    ("mcp", "workdirs"): ["/srv/project", "~/scratch"],
    ("console", "theme"): "textual-dark",
    ("console", "columns"): ["state", "id", "age", "agent", "prompt"],
    ("keys", "cancel"): "delete",
    ("autoscale", "check"): ["./no-new-errors.sh"],
    ("schedules", "template"): "review",
    ("deploy", "pull"): ["git", "pull", "--ff-only"],
    ("deploy", "verify"): ["./verify.sh"],
    ("deploy", "upgrade"): ["./upgrade.sh"],
    ("deploy", "restart"): ["./restart.sh"],
    ("deploy", "monitor"): ["./is-it-well.sh"],
    ("deploy", "group"): "agents",
    ("deploy", "agent_session"): "tmux:claude",
    ("needs", "MY_AGENT_KEY"): "the agents' account",
    ("audits", "command"): ["./is-it-so.sh"],
    ("audits", "meaning"): "two tables were merged that do not belong together",
    ("audits", "issue"): "ISSUE-12",
    ("hosts", "cores"): 8,
    ("hosts", "memory"): "32G",
    ("hosts", "groups"): ["agents"],
    ("hosts", "note"): "the one with the large disk",
}

_BY_KIND: Mapping[Kind, Any] = {
    Kind.FLAG: True,
    Kind.COUNT: 1,
    Kind.NUMBER: 1,
    Kind.SECONDS: 60,
    Kind.SIZE: "1G",
    Kind.PORT: 1883,
    Kind.WORDS: ["program"],
    Kind.NAMES: ["VARIABLE"],
    Kind.PAIRS: {"VARIABLE": "text"},
    Kind.STORE: "files",
    Kind.DURATION: "30m",
    Kind.CRON: "0 9 * * 1-5",
    Kind.ZONE: "Europe/Berlin",
}


class Example(NamedTuple):
    """What may stand behind a key."""

    value: Any
    is_default: bool  #: it is so when nobody says anything

    @property
    def toml(self) -> str:
        return toml_of(self.value)


def example_of(path: KeyPath, setting: Setting) -> Example:
    if setting.default is not None:
        value = setting.default
        return Example(_shown_size(value) if setting.kind is Kind.SIZE else value, True)
    known = _EXAMPLES.get((path[0], path[-1]))
    if known is None:
        known = setting.choices[0] if setting.choices else _BY_KIND.get(setting.kind, "text")
    return Example(known, False)


def toml_of(value: Any) -> str:
    """One value as TOML has it; texts, numbers, lists and flat tables are all that there is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml_of(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_of, value))}]"
    if isinstance(value, str):
        # JSON's escapes are TOML's; the one sign that only TOML forbids is DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def _shown_size(value: int) -> int | str:
    for unit, size in (("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if value % size == 0:
            return f"{value // size}{unit}"
    return value
