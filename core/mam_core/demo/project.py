"""The project that the simulated agents work on: a few files under git, so that there is a diff."""

from __future__ import annotations

import os

from mam_core import git
from mam_core.git import GitFailed, GitMissing

_FILES = {
    "README.md": "# A project that does not exist\n\nMade by `mam demo` for simulated agents.\n",
    "docs/release-notes.md": "Release notes\n\n",
    "src/login.py": 'def login(name: str) -> str:\n    return f"hello {name}"\n',
}
#: Nobody's own settings.
_AS = (
    *("-c", "user.name=mam demo", "-c", "user.email=demo@example.invalid"),
    *("-c", "core.excludesFile=/dev/null"),
)


def make(folder: str) -> None:
    """Without git there is a project all the same, and no diff."""
    for name, text in _FILES.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    try:
        git.new_repository(folder)
        git.do(folder, *_AS, "add", ".")
        git.do(folder, *_AS, "commit", "-qm", "Begin the demonstration")
    except (GitMissing, GitFailed):
        return
