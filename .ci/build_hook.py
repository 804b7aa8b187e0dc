"""What a wheel carries beside the code: the pages of the manual, the man page, the completions.

The last two are made from the parsers, anew for each wheel, so that no copy can be older than the
code. Only the standard library is needed: an isolated build has nothing else. Of docs/ only the
text goes along, which a terminal can show; pictures are for the web.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildHook(BuildHookInterface[Any]):
    """Adds these files to a wheel; an editable install has none of them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        docs = os.path.join(self.root, "docs")
        for name in sorted(os.listdir(docs)):
            if name.endswith(".md"):
                build_data["force_include"][os.path.join(docs, name)] = f"mam_core/docs/{name}"
        sys.path.insert(0, os.path.join(self.root, "core"))
        try:
            from mam_core.cli.completion import SCRIPTS
            from mam_core.cli.manpage import man_page
        finally:
            sys.path.pop(0)
        files = {
            "share/man/man1/mam.1": man_page(),
            "share/bash-completion/completions/mam": SCRIPTS["bash"] + "\n",
            "share/zsh/site-functions/_mam": SCRIPTS["zsh"] + "\n",
            "share/fish/vendor_completions.d/mam.fish": SCRIPTS["fish"] + "\n",
        }
        self._made = tempfile.mkdtemp(prefix="mam-wheel-")
        for number, (place, text) in enumerate(files.items()):
            path = os.path.join(self._made, str(number))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            build_data["shared_data"][path] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        made = getattr(self, "_made", None)
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
