"""``python -m mam_core``: the command ``mam``, where it is not on the path."""

from __future__ import annotations

from mam_core.cli.main import entry

if __name__ == "__main__":
    entry()
