"""A lasting ``tmux -C`` client: one process, asked again and again over its pipes."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from mam_core.tmux.command import Address, failure, program, surroundings
from mam_core.tmux.control_parser import ControlParser, Garbled, Notice, Reply
from mam_core.tmux.facts import NoServer, TmuxFailed
from mam_core.tmux.formats import checked_pane

_CHUNK = 1 << 16

#: How long a client that was told to go may take.
_PARTING_SEC = 0.5

#: What tmux says before it attaches, or instead, is short.
_WORDS_LIMIT = 4096


class Chain(NamedTuple):
    """One command line, and how many commands are in it; it stops at the first that fails."""

    line: bytes
    commands: int

    @classmethod
    def of(cls, words: Sequence[str]) -> Chain:
        """Words as tmux reads them from a line; a lone ``;`` is its separator."""
        line = " ".join(";" if part == ";" else shlex.quote(part) for part in words)
        return cls(line.encode(), 1 + words.count(";"))


class ControlClient:
    """Attached, without the panes' output; its size counts for nothing.

    Not read-only, though it only reads: since tmux 3.7 nobody can send keys by a command to a
    session in which such a client is the last one that came.

    After any failure it is of no more use and is to be closed: replies are told apart
    by their order alone.
    """

    def __init__(self, address: Address, limit_sec: float, beside: str | None = None) -> None:
        """`beside` is a pane whose session it goes to; else to the one that was used last."""
        argv = [program(), "-u", "-N", *address.words, "-C"]
        argv += ["attach-session", "-E", "-f", "ignore-size,no-output"]
        argv += ["-t", checked_pane(beside)] if beside is not None else []
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env=surroundings(),
                start_new_session=True,  # ^C is for the command that we serve, not for it
            )
        except OSError as problem:
            raise TmuxFailed(f"tmux could not be started: {problem.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._parser = ControlParser()
        self._head = b""
        try:
            self._greet(time.monotonic() + limit_sec)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, chains: Sequence[Chain], limit_sec: float) -> list[list[Reply]]:
        """The replies to each chain; a chain that broke off ends with its error."""
        deadline = time.monotonic() + limit_sec
        unsent = memoryview(b"".join(chain.line + b"\n" for chain in chains))
        answers: list[list[Reply]] = [[]]
        while len(answers) <= len(chains):
            self._wait(bool(unsent), deadline)
            if unsent:
                unsent = unsent[self._send(unsent) :]
            for reply in self._receive():
                if len(answers) > len(chains):
                    raise TmuxFailed("tmux answered what it was not asked")
                answers[-1].append(reply)
                if reply.is_error or len(answers[-1]) == chains[len(answers) - 1].commands:
                    answers.append([])
        return answers[:-1]

    def close(self) -> None:
        """It goes when its input ends; so it does when we are killed."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()
        try:
            self._process.wait(_PARTING_SEC)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _greet(self, deadline: float) -> None:
        """Wait for the reply to the attach itself; before it tmux may say why it does not."""
        while b"%begin " not in self._head:
            self._wait(False, deadline)
            self._head += self._read()
            if len(self._head) > _WORDS_LIMIT:
                raise TmuxFailed("tmux said something else than a control client expects")
        self._head, begin, rest = self._head.partition(b"%begin ")
        is_attached = False
        data = begin + rest
        while not is_attached:
            for item in self._parse(data):
                if isinstance(item, Reply):
                    if item.is_error:
                        raise failure(b" ".join(item.lines).decode(errors="replace"))
                    is_attached = True
            if not is_attached:
                self._wait(False, deadline)
                data = self._read()

    def _receive(self) -> list[Reply]:
        """Replies to commands of ours; notices are nobody's news here."""
        items = self._parse(self._read())
        return [item for item in items if isinstance(item, Reply) and item.is_ours]

    def _parse(self, data: bytes) -> list[Reply | Notice]:
        try:
            return self._parser.feed(data)
        except Garbled as problem:
            raise TmuxFailed(f"tmux's answer cannot be read: {problem}") from None

    def _wait(self, is_sending: bool, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if is_sending:
            poll.register(self._in, select.POLLOUT)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise TmuxFailed("tmux did not answer in time")

    def _read(self) -> bytes:
        try:
            data = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return b""
        if not data:
            raise self._gone()
        return data

    def _send(self, data: memoryview) -> int:
        try:
            return os.write(self._in, data[:_CHUNK])
        except BlockingIOError:
            return 0
        except OSError:
            raise self._gone() from None

    def _gone(self) -> TmuxFailed:
        """The client has ended: with a complaint, or because its session or server did."""
        said = self._head.decode(errors="replace").strip().removeprefix("%exit").strip()
        return failure(said) if said else NoServer("tmux let go of its client")
