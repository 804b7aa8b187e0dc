"""What the command line accepts before any verb is known."""

from __future__ import annotations

from mam_core.errors import MamError

#: Options that may stand before or after the verb, and whether each takes a value.
GLOBAL_OPTIONS = {
    "--registry-dir": True,
    "--store": True,
    "--config": True,
    "--allow-network-fs": False,
}


class UsageError(MamError):
    """The command line cannot be understood."""

    title = "Usage"
    exit_code = 2
