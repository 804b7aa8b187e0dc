"""What only looks like a key or a path, and the prompt: taken out of what is told.

What a job's own secrets and folders are is known, and `redaction` hides it. This
is for the rest. Every publish passes here, so nothing is compiled that a text gives
no reason for; and it happens under the registry's lock, so no pattern may take
longer than its text is long.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "[hidden]"

#: Fewer characters than this are words that anybody says.
_TELLING_CHARS = 16
_MAX_PROMPT_LINES = 500
_PROMPT = "[prompt]"

_KEYS = r"""
      \b(?:(?:sk|pk|rk)-|gh[oprsu]_|github_pat_|glpat-|xox[abprs]-|hf_|ya29\.|AIza|AKIA)[\w.-]{12,}
    | (?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?
    | (?i:(?<=\bbearer\ )[^\s"',]{6,})
    | (?i:(?<=\bkey\ provided:\ )[^\s"',]+)
    | (?<=://)[^\s/@"':]{1,200}:[^\s/@"']{1,200}(?=@)
    """
#: A text in lower case without any of these has none of them.
_KEY_SIGNS = (
    *("sk-", "pk-", "rk-", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox"),
    *("hf_", "ya29.", "aiza", "akia", "eyj", "bearer ", "key provided: ", "://"),
)
_NAMED = (
    r"""((?:api[_-]?key|token|passwd|password|secret)["']?\s?[:=]\s?["']?)"""
    r"""[^\s"',;&]{3,}"""
)
_NAMES = ("key", "token", "passwd", "password", "secret")
#: Two folders at least, and not within an address of the web.
_PATH = r"(?<![\w./~:-])(?:file://)?{}(?:/[\w.+@-]+)*/([\w.+@-]+)/?"
_ABSOLUTE, _ANY = _PATH.format(r"/[\w.+@-]+"), _PATH.format(r"(?:~|/[\w.+@-]+)")


def without_keys(text: str) -> str:
    """`text` with a marker for what looks like a key, a token or a password."""
    lowered = text.lower()
    if any(sign in lowered for sign in _KEY_SIGNS):
        text = re.compile(_KEYS, re.VERBOSE).sub(HIDDEN, text)
    if any(name in lowered for name in _NAMES):
        text = re.compile(_NAMED, re.IGNORECASE).sub(rf"\1{HIDDEN}", text)
    return text


def without_paths(text: str, *, of_home: bool = True) -> str:
    """`text` with the last name of each path; those of the home folder may stay."""
    if "/" not in text:
        return text
    return re.compile(_ANY if of_home else _ABSOLUTE).sub(r"…/\1", text)


class PromptGuard:
    """Knows a prompt, and takes it out of what is told."""

    def __init__(self, prompt: str) -> None:
        self._whole = " ".join(prompt.split())
        lines = (" ".join(line.split()) for line in prompt.splitlines()[:_MAX_PROMPT_LINES])
        self._lines = [line for line in lines if len(line) >= _TELLING_CHARS]

    def hide(self, text: str) -> str:
        """`text` without the prompt, whole or a line of it; what is too short to tell may stay."""
        known = " ".join(text.removesuffix("…").split())
        if len(known) >= _TELLING_CHARS and known in self._whole:
            return _PROMPT
        return self.hide_lines(text)

    def hide_lines(self, text: str) -> str:
        """Only whole lines of it: for values, which a prompt may well name."""
        for line in self._lines:
            if line in text:
                text = text.replace(line, _PROMPT)
        return text


def told_detail(prompt: str, text: str) -> str:
    """A sentence of an event, by whoever wrote it."""
    if len(text) >= _TELLING_CHARS:
        text = PromptGuard(prompt).hide(text)
    return without_paths(without_keys(text), of_home=False)


def told_data(prompt: str, data: dict[str, Any]) -> dict[str, Any]:
    """The values of an event, however deep; those with the name of a secret are none of ours."""
    guard: PromptGuard | None = None

    def told(value: Any) -> Any:
        nonlocal guard
        if isinstance(value, str):
            if len(value) >= _TELLING_CHARS:
                guard = guard or PromptGuard(prompt)
                value = guard.hide_lines(value)
            return without_paths(without_keys(value), of_home=False)
        if isinstance(value, dict):
            return {
                told(name): HIDDEN if isinstance(item, str) and _is_secret(name) else told(item)
                for name, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [told(item) for item in value]
        return value

    changed: dict[str, Any] = told(data)
    return changed


def _is_secret(name: str) -> bool:
    """A key as programs name secrets: ``token``, ``api_key``, ``DB_PASSWORD``; not ``tokens``."""
    known = name.lower().replace("-", "_").replace("api_key", "apikey")
    return known.endswith(("token", "apikey", "password", "passwd", "secret"))
