"""From a fresh child process to the agent's command, or to a word about why not.

The child is told what to run by a dictionary of bytes; it tells which stage
failed through a pipe that closes by itself when the command starts, so that "not
found" never looks like an agent that ended with 127.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # see processes.py
import errno
import os
import resource

from mam_core.work import kernel
from mam_core.work.processes import put_on_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOT_FOUND = 127
NOT_EXECUTABLE = 126

#: What one process may have beyond a memory cap before the kernel refuses it more: runtimes
#: reserve what they never use (Node does not start below 600 MB), and the cap is for the scales.
HEADROOM = 1 << 30

#: As if it used this many thousandths of all memory more than it does.
OOM_SCORE = 300

#: Stages, as they are reported.
WORKDIR, STDIN, LIMITS = "workdir", "stdin", "limits"
COMMAND, INTERPRETER, PROCESS = "command", "interpreter", "process"


def become_agent(
    orders: dict[str, Any], parent: int, stdout: int, stderr: int, trouble: int
) -> None:
    """Never returns: the agent's command has taken our place, or there was trouble.

    `parent` is who we must not outlive before the mark is on.
    """
    stage = LIMITS
    try:
        _bind_to(parent)
        os.setsid()  # `kill 0` of an agent must not reach its supervisor
        put_on_mark(orders["token"])
        _go_first_when_memory_ends()
        if orders["door"] >= 0:
            os.write(orders["door"], b"0")  # into the cgroup of the attempt, with all that follow
        for name, value in orders["limits"].items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (value, value))
        stage = WORKDIR
        os.chdir(orders["cwd"])
        stage = STDIN
        stdin = orders["input"]
        if stdin < 0:
            stdin = os.open(orders["stdin"] or os.devnull, os.O_RDONLY)
        else:
            _take_terminal(stdin)
        stage = COMMAND
        for source, target in _away_from_standard((stdin, stdout, stderr)):
            os.dup2(source, target)
        forget_signals()
        program = _find(orders["argv"][0], orders["environ"])
        if os.path.isfile(program):
            stage = INTERPRETER  # what "no such file" means for a file that is there
        os.execve(program, orders["argv"], orders["environ"])
    except OSError as problem:
        if stage == INTERPRETER and problem.errno != errno.ENOENT:
            stage = COMMAND
        os.write(trouble, f"{stage} {problem.errno or 0}".encode())
    except BaseException:
        os.write(trouble, f"{stage} 0".encode())
    finally:
        os._exit(NOT_FOUND)


def _bind_to(parent: int) -> None:
    """The kernel kills us when our parent dies; where it cannot, there is no Linux."""
    try:
        kernel.die_with_parent(_signal.SIGKILL)
    except OSError:
        return
    if os.getppid() != parent:
        os._exit(NOT_FOUND)  # it died before we were bound


def _take_terminal(stdin: int) -> None:
    """A terminal as input is ours from now on: its ^C, its size and its end reach the agent."""
    if not os.isatty(stdin):
        return
    import fcntl
    import termios

    fcntl.ioctl(stdin, termios.TIOCSCTTY, 0)


def _go_first_when_memory_ends() -> None:
    """Before the worker, the console and the editor do: a choice that the kernel leaves to us."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if int(os.read(fd, 20)) < OOM_SCORE:
            os.write(fd, b"%d" % OOM_SCORE)
    except OSError:
        return
    finally:
        os.close(fd)


def _find(name: bytes, environ: dict[bytes, bytes]) -> bytes:
    """Where the agent's own PATH has it; one that is there and cannot be run comes last."""
    if b"/" in name:
        return name
    path = environ.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    places = [os.path.join(folder or b".", name) for folder in path]
    places = [place for place in places if os.path.isfile(place)]
    places.sort(key=lambda place: not os.access(place, os.X_OK))
    if not places:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return places[0]


def _away_from_standard(sources: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Pairs for dup2, none of which can overwrite the source of a later one."""
    import fcntl

    return [
        (fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, 3), target)
        for target, source in enumerate(sources)
    ]


def forget_signals() -> None:
    """Whatever Python or our starter ignored or held back: the agent begins afresh."""
    for number in _signal.valid_signals():
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # KILL, STOP and the C library's own
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
