"""A text in the operator's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile

from mam_core.errors import MamError

#: In the order in which people set them.
_VARIABLES = ("VISUAL", "EDITOR")
_USUAL = "vi"


class NoEditor(MamError):
    """The editor could not be used."""

    title = "Editor"


def edited(text: str, suffix: str = ".md") -> str | None:
    """What the editor leaves; None when it ended with a failure, which means: never mind.

    The file is ours alone and gone afterwards: a prompt may hold what others must not read.
    """
    named = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), _USUAL)
    with tempfile.TemporaryDirectory(prefix="mam-edit-") as folder:
        path = os.path.join(folder, f"prompt{suffix}")
        with open(path, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)
        try:
            done = subprocess.run([*shlex.split(named), path], check=False)
        except (OSError, ValueError) as problem:
            raise NoEditor(f"the editor {named!r} cannot be started: {problem}") from None
        if done.returncode != 0:
            return None
        try:
            with open(path, encoding="utf-8", newline="") as file:
                return file.read().removesuffix("\n")
        except (OSError, UnicodeDecodeError) as problem:
            raise NoEditor(f"what the editor left cannot be read: {problem}") from None
