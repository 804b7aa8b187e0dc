"""A job's own check as a process: a shell line, bounded in time and in what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping

from mam_core.work.bounded_process import last_line, run_bounded, signal_name
from mam_core.work.validation import Check

SHELL = "/bin/sh"


def run(line: str, workdir: str, environ: Mapping[str, str], timeout_sec: float) -> Check:
    """Exit code 0 passes. At the end of its time it is ended with all that it started."""
    try:
        ended = run_bounded([SHELL, "-c", line], workdir, environ, timeout_sec)
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        return Check(line, False, f"the validate command cannot be run in {workdir}: {why}")
    return sentence(line, ended.code, ended.output, timeout_sec)


def sentence(line: str, code: int | None, said: str, timeout_sec: float) -> Check:
    """What came of it; a negative code is a signal, None means that its time was over first."""
    if code is None:
        words = f"the validate command did not end within {timeout_sec:g} s"
    elif code < 0:
        words = f"the validate command was ended by {signal_name(-code)}"
    elif code:
        words = f"the validate command ended with {code}{last_line(said)}"
    else:
        words = "the validate command passed"
    return Check(line, code == 0, words, said)
