"""Every failure a person can meet, as one tree.

An error has a title and a sentence, so that the command line and the console
print the same object. The docstring of a class is its default sentence;
``exit_code`` is what the command line answers with.
"""

from __future__ import annotations


class MamError(Exception):
    """Something went wrong."""

    title = "Error"
    exit_code = 1

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])

    @property
    def message(self) -> str:
        return str(self.args[0])


class BadJobId(MamError):
    """A job id is a letter or digit followed by at most 63 letters, digits, '_' or '-'."""

    title = "Bad job id"


class BadStatus(MamError):
    """A status is one of pending, running, completed, error, cancelled."""

    title = "Bad status"


class JobNotFound(MamError):
    """There is no such job."""

    title = "No such job"


class InvalidField(MamError):
    """A field has a value that it cannot have."""

    title = "Bad value"
    exit_code = 2


class UnreadableRecord(MamError):
    """The record cannot be read."""

    title = "Unreadable record"


class TransitionRefused(MamError):
    """The job is not in a state that allows this."""

    title = "Refused"


class StaleAttempt(TransitionRefused):
    """The write carries an old attempt and was refused."""

    title = "Old attempt"


class Overtaken(TransitionRefused):
    """The job changed between the look at it and the change of it."""


class LockTimeout(MamError):
    """The registry's lock is held by another process."""

    title = "Registry busy"


class StoreError(MamError):
    """The registry folder cannot be used."""

    title = "Registry"


class RegistryMissing(StoreError):
    """There is no registry here yet."""


class RegistryGone(StoreError):
    """The registry folder was removed or replaced while it was in use."""


class UnsafePath(StoreError):
    """A path is a link, belongs to somebody else or is not a plain file."""


class SyncFailed(StoreError):
    """The disk did not take what was written; this process writes nothing more."""


class NetworkFileSystem(StoreError):
    """The registry folder is on a network file system, where its lock cannot be trusted."""


class ConfigError(MamError):
    """The configuration file has a mistake."""

    title = "Configuration"
