"""Child processes for tests: real ones, each ended by the test that started it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil


class Child:
    """A Python program that talks by lines: it says what it did, and waits for a word."""

    def __init__(self, program: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def hear(self) -> str:
        """Its next line; empty when it ended without one."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, word: str = "go") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Whatever state it is in, also stopped: kill -9 reaches it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@contextmanager
def child(program: str, *arguments: str) -> Iterator[Child]:
    made = Child(program, *arguments)
    try:
        yield made
    finally:
        made.end()


def run_all(program: str, argument_lists: list[list[str]], timeout: float = 100) -> list[str]:
    """Run one program many times at once, released together; what each printed."""
    children = [Child(program, *arguments) for arguments in argument_lists]
    try:
        for one in children:
            assert one.hear() == "ready"
        for one in children:
            one.tell()
        printed = [one.process.communicate(timeout=timeout)[0] for one in children]
        assert [one.process.returncode for one in children] == [0] * len(children)
        return printed
    finally:
        for one in children:
            one.end()


def is_alive(pid: int) -> bool:
    """Whether it runs; one that nobody has waited for is over, and it may go while we look."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
