"""What is known of each built-in agent by trying it: which version, and how one logs in.

The versions are those whose output, hooks and screens were recorded. Signs of a login are
signs only: a variable that is set, a file that is there. Nothing of them is ever opened, and
a key in a system's key ring is not seen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple


class Tried(NamedTuple):
    """One agent's program."""

    version: str  #: whose behaviour was recorded
    recorded: str  #: when
    variables: tuple[str, ...]  #: one of these is enough
    files: tuple[str, ...]  #: so is one of these
    login: str  #: what a person does

    def sign_of_login(self, environ: Mapping[str, str]) -> str:
        """The variable or the file that says so; empty: there is none."""
        if named := next((name for name in self.variables if environ.get(name)), ""):
            return named
        home = environ.get("HOME") or os.path.expanduser("~")
        for file in self.files:
            folder, _, rest = file.partition("/")
            # A folder that a variable of the program's own can move.
            place = environ.get(folder[1:]) if folder.startswith("$") else home
            if place and os.path.exists(os.path.join(place, rest)):
                return file
        return ""


_DAY = "2026-11-16"

TRIED: Mapping[str, Tried] = {
    "claude-code": Tried(
        "2.1.197",
        _DAY,
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        ("$CLAUDE_CONFIG_DIR/.credentials.json", "~/.claude/.credentials.json"),
        "run `claude` once in a terminal and log in, or set ANTHROPIC_API_KEY",
    ),
    "codex": Tried(
        "0.166.0",
        _DAY,
        ("OPENAI_API_KEY", "CODEX_API_KEY"),
        ("$CODEX_HOME/auth.json", "~/.codex/auth.json"),
        "run `codex login`, or set OPENAI_API_KEY",
    ),
    "gemini": Tried(
        "0.61.0",
        _DAY,
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("~/.gemini/oauth_creds.json",),
        "run `gemini` once in a terminal and choose how to log in, or set GEMINI_API_KEY",
    ),
    "opencode": Tried(
        "1.18.33",
        _DAY,
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
        ("~/.local/share/opencode/auth.json", "~/.config/opencode/opencode.json"),
        "run `opencode auth login`, or set the key of its provider",
    ),
    "aider": Tried(
        "0.86.2",
        _DAY,
        ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
        ("~/.aider.conf.yml",),
        "set the key of its provider, such as OPENAI_API_KEY",
    ),
}
