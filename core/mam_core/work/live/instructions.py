"""The one line that an interactive agent is given: where its prompt stands, and how to report.

The prompt itself stays in its file (decision 16): no byte of it passes through a
terminal, where it could be keys. What the line holds is ours, and checked.
"""

from __future__ import annotations

import shlex

from mam_core.errors import InvalidField
from mam_core.messages import without_controls
from mam_core.records import Job


def line_for(job: Job, prompt_path: str, registry_path: str) -> bytes:
    """H6: job id, registry and the exact commands. `InvalidField` for paths that cannot be typed.

    Short on purpose: some agents fold a paste of 800 characters into a button.
    """
    publish = (
        f"mam publish --registry-dir {shlex.quote(registry_path)}"
        f" --job {job.job_id} --attempt {job.attempt} --event"
    )
    line = (
        f"Job {job.job_id}: read the file {shlex.quote(prompt_path)} and do what it says."
        f" When it is done run: {publish} completed"
        f" (if you cannot do it: error --detail WHY; on the way: progress --detail TEXT)"
    )
    if without_controls(line) != line or "\n" in line:
        raise InvalidField(
            "the paths of the registry or of its logs hold control characters, which cannot be "
            "typed into an agent's terminal"
        )
    return line.encode()
