"""What may stand on a page that is sent to others: no secret, no key, nobody's home folder.

A page for a pull request is read by people who do not know the machine, so this is
stricter than what an operator sees on the own screen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from mam_core.discretion import without_keys
from mam_core.records import Job
from mam_core.redaction import discreet

Tell = Callable[[str], str]
_HOME_ENDS = r"(?![\w-]|\.\w)"


def tell_of(job: Job | None) -> Tell:
    """What makes a text of this job fit for others; None: its record, and its secrets, are gone."""
    home = os.path.expanduser("~").rstrip("/")
    without_home = re.compile(re.escape(home) + _HOME_ENDS) if home.startswith("/") else None

    def tell(text: str) -> str:
        if job is not None:
            text = str(discreet(job, text))
        elif without_home is not None and home in text:
            text = without_home.sub("~", text)
        return without_keys(text)

    return tell
