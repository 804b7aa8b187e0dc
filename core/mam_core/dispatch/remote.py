"""A dispatch registry on another host: rsync brings it and takes it, ssh holds its lock meanwhile.

The remote shell is ssh, or what ``RSYNC_RSH`` says, for both. Everything is bounded
in time: a host that does not answer costs the timeout and nothing else.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from mam_core.dispatch import remote_lock
from mam_core.dispatch.layout import Sheet, compose, parse
from mam_core.dispatch.merge import merge_sheets
from mam_core.dispatch.sync import RemoteUnreachable, Synced, empty_sheet
from mam_core.dispatch.tasks import DispatchError
from mam_core.dispatch.tasks_file import TasksFile

_SHELL_VARIABLE = "RSYNC_RSH"
#: No question can be answered here; a host that is not there is known by then.
_SSH = "ssh -o BatchMode=yes -o ConnectTimeout=5"
#: A lock over there is waited for this long, and held no longer than the second.
_WAIT_SEC, _HOLD_SEC = 10.0, 15.0
_LAST_WORDS_SEC = 2.0


class Elsewhere:
    """A file of another host."""

    def __init__(self, host: str, path: str) -> None:
        self._host = host
        self._path = path
        self._shell = os.environ.get(_SHELL_VARIABLE) or _SSH

    def sync(self, file: TasksFile, timeout_sec: float) -> Synced:
        deadline = time.monotonic() + timeout_sec
        with (
            self._locked(deadline) as there,
            tempfile.TemporaryDirectory(prefix="mam-dispatch-") as folder,
        ):
            copy = os.path.join(folder, "tasks.json")
            theirs = empty_sheet()
            if there.facts["exists"]:
                self._rsync(self._at(there.facts["path"]), copy, deadline)
                theirs = self._read(copy, sealed=bool(there.facts["sealed"]))
            # Our own lock comes last and is held for a moment: who works here does not wait for
            # a network, and what they changed meanwhile is in the merge.
            with file.changing(create=True) as draft:
                merged = merge_sheets(draft.sheet, theirs)
                draft.replace(merged.ours)
            if merged.theirs != theirs.text or not there.facts["exists"]:
                with open(copy, "wb") as out:
                    out.write(merged.theirs)
                self._rsync(copy, self._at(there.facts["temp"]), deadline)
                there.rename(deadline)
            return Synced(merged.pulled, merged.pushed)

    def _at(self, path: str) -> str:
        return f"{self._host}:{path}"

    def _read(self, path: str, *, sealed: bool) -> Sheet:
        with open(path, "rb") as file:
            data = file.read()
        if sealed:
            return Sheet(data)
        try:
            return Sheet(compose(parse(data)))
        except DispatchError as problem:
            raise DispatchError(
                f"{self._at(self._path)} cannot be read: {problem.message}"
            ) from None

    def _rsync(self, source: str, target: str, deadline: float) -> None:
        left = max(1.0, deadline - time.monotonic())
        # -s: a blank in a path is no end of it, whatever the version over there. Its own time
        # limit ends it also where we cannot, because somebody killed us.
        words = ["rsync", "-sz", f"--timeout={left:.0f}", "-e", self._shell, "--", source, target]
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=left,
            )
        except FileNotFoundError:
            raise RemoteUnreachable(
                "rsync is not here: install it, or name a remote that is a path on this host"
            ) from None
        except subprocess.TimeoutExpired:
            raise RemoteUnreachable(f"{self._host} does not answer in time") from None
        if done.returncode:
            raise RemoteUnreachable(f"rsync of {self._at(self._path)} failed: {_last(done.stderr)}")

    @contextmanager
    def _locked(self, deadline: float) -> Iterator[_Held]:
        with open(remote_lock.__file__, encoding="utf-8") as file:
            program = file.read()
        words = ["python3", "-c", program, self._path, f"{_WAIT_SEC:g}", f"{_HOLD_SEC:g}"]
        command = [*shlex.split(self._shell), self._host, shlex.join(words)]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as problem:
            why = (problem.strerror or str(problem)).lower()
            raise RemoteUnreachable(f"{command[0]} cannot be started: {why}") from None
        with process:
            try:
                yield _Held(self._host, process, deadline)
                _let_go(process)
            except BaseException:
                process.kill()
                raise


class _Held:
    """The lock over there is ours, for a while."""

    def __init__(self, host: str, process: subprocess.Popen[bytes], deadline: float) -> None:
        self._host = host
        self._process = process
        self.facts = self._heard(deadline)

    def rename(self, deadline: float) -> None:
        stdin = _of(self._process.stdin)
        with suppress(BrokenPipeError):
            stdin.write(b"rename\n")
            stdin.flush()
        self._heard(deadline)

    def _heard(self, deadline: float) -> dict[str, Any]:
        stdout = _of(self._process.stdout)
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                raise RemoteUnreachable(f"{self._host} does not answer in time")
            data = os.read(stdout.fileno(), 65536)
            if not data:
                until = min(deadline, time.monotonic() + _LAST_WORDS_SEC)
                said = _last(_said(_of(self._process.stderr), until)) or "it says nothing"
                raise RemoteUnreachable(f"{self._host} cannot be reached: {said}")
            line += data
        try:
            heard = json.loads(line)
        except ValueError:
            heard = None
        if not isinstance(heard, dict):
            raise RemoteUnreachable(
                f"{self._host} says what mam does not understand: {line[:80]!r}"
            )
        if "error" in heard:
            raise RemoteUnreachable(f"{self._host}: {heard['error']}")
        return heard


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """The end of its input ends it and frees the lock; one that does not hear is ended."""
    with suppress(OSError):
        _of(process.stdin).close()
    try:
        process.wait(_LAST_WORDS_SEC)
    except subprocess.TimeoutExpired:
        process.kill()


def _said(stream: IO[bytes], until: float) -> bytes:
    """What can be read by then. A program that ssh left behind may keep the stream open."""
    said = b""
    while (left := until - time.monotonic()) > 0 and select.select([stream], [], [], left)[0]:
        data = os.read(stream.fileno(), 65536)
        if not data:
            break
        said = (said + data)[-65536:]
    return said


def _of(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _last(words: bytes) -> str:
    """The last line of what a program said."""
    lines = words.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip()[:200] if lines else ""
