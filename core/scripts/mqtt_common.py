#!/usr/bin/env python3
"""What the original's scripts share, under its names: records, broker, retries, audit log.

Thin on purpose: every function hands on to `mam_core`, which the command line
uses too. The writers of the audit log never raise; what goes wrong is a warning
of the logger "mam".
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

try:
    import mam_core  # noqa: F401 — asks only whether it is installed
except ModuleNotFoundError:
    _core = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    _trouble = ""
    if sys.version_info < (3, 11):  # noqa: UP036 — this file may be run by the system's Python
        _trouble = f"mam needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}"
    elif not os.path.isdir(os.path.join(_core, "mam_core")):
        _trouble = (
            f"mam is not installed for {sys.executable} and not in {_core}: link to this script "
            "in a clone instead of copying it, or run it with the Python that has mam"
        )
    if _trouble:
        _trouble = f"{os.path.basename(__file__)}: {_trouble}"
        raise (SystemExit if __name__ == "__main__" else ImportError)(_trouble) from None
    sys.path.append(_core)

from mam_core import api, codec
from mam_core.api import next_seq, registry_lock
from mam_core.audit import AuditEvent, AuditLine, warn
from mam_core.audit_base import Audit
from mam_core.clock import fine_stamp, stamp
from mam_core.errors import JobNotFound, MamError
from mam_core.events.backoff import with_retry
from mam_core.events.signature import verify as verify_hmac
from mam_core.locations import DEFAULT_REGISTRY_DIR as _DEFAULT_REGISTRY_DIR
from mam_core.locations import logs_path, registry_place
from mam_core.record_parts import Broker
from mam_core.records import REDACTED, SCHEMA_VERSION, Job, Status, check_job_id
from mam_core.wiring import open_audit, open_registry

DEFAULT_REGISTRY_DIR = Path(_DEFAULT_REGISTRY_DIR)
LOGS_DIR: Path  #: follows DELEGATE_JOB_LOGS_DIR and the working directory whenever it is read

__all__ = [
    "DEFAULT_REGISTRY_DIR",
    "LOGS_DIR",
    "SCHEMA_VERSION",
    "append_event",
    "broker_config_from_env",
    "broker_config_from_job",
    "init_job_log",
    "iter_logged_events",
    "job_log_path",
    "list_logged_jobs",
    "load_job",
    "make_client",
    "next_seq",
    "read_logged_meta",
    "read_logged_status",
    "registry_lock",
    "update_job_status",
    "update_logged_status",
    "verify_hmac",
    "with_retry",
]

_SECRETS = ("auth_token", "password")
_NUMBERS = ("n", "revision")  #: the log counts by these, so a caller's own are set apart


def __getattr__(name: str) -> Any:
    if name == "LOGS_DIR":
        return Path(logs_path(registry_place().path))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class JobFileNotFound(JobNotFound, FileNotFoundError):
    """There is no such job; scripts that look for the missing file catch it too."""


# -- records -----------------------------------------------------------------------------------


def load_job(job_id: str, registry_dir: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """The record as it stands on disk."""
    try:
        with open_registry(_text(registry_dir)) as registry:
            return _plain(registry.get(job_id))
    except JobNotFound as missing:
        raise JobFileNotFound(missing.message) from None


def update_job_status(
    job_id: str, status: str, registry_dir: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Set a status; the answer is the record as it now stands."""
    return _plain(api.update_status(job_id, status, _text(registry_dir)))


# -- the broker --------------------------------------------------------------------------------


def broker_config_from_env(
    registry_dir: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Where to connect: the MQTT_* variables, else ``mam.toml``, else the embedded broker."""
    return _resolved(None, registry_dir)


def broker_config_from_job(
    job: Mapping[str, Any], registry_dir: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Where to connect for a job: its record; a variable wins only where it is set.

    The login of the embedded broker is looked up in the registry; in what an agent runs, it is
    the one that may tell events and hear none.
    """
    return _resolved(Broker.from_dict(job.get("broker") or {}), registry_dir)


def make_client(config: Mapping[str, Any] | None = None, client_id: str | None = None) -> Any:
    """A paho client (callback API 2) with login, TLS and an id of its own; not yet connected."""
    from mam_core.events.connection import Connection
    from mam_core.wiring import mqtt_client

    known = Connection.from_dict(_resolved() if config is None else config)
    try:
        return mqtt_client(known, client_id)
    except ModuleNotFoundError as missing:
        raise MamError(
            f"this Python ({sys.executable}) has no {missing.name}: install paho-mqtt 2, "
            "or run the script with the Python of mam's .venv"
        ) from None


def _resolved(
    broker: Broker | None = None, registry_dir: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    from mam_core.config import load
    from mam_core.events.connection import resolve, role_here

    config = load()
    path = registry_place(_text(registry_dir) or config.registry_dir).path
    return resolve(broker, config, registry_path=path, role=role_here()).to_dict()


# -- the audit log, writing --------------------------------------------------------------------


def init_job_log(job: Mapping[str, Any]) -> None:
    """Begin the history of a job; one that has begun is left alone."""
    try:
        record = Job.from_dict(job)
    except MamError as problem:
        warn(f"the audit log of job {job.get('job_id')!r:.80} is not begun: {problem}")
        return
    with open_audit() as log:
        if log.meta(record.job_id) is None:
            line = AuditLine(AuditEvent.REGISTERED, fine_stamp(time.time()), {}, record.revision)
            log.begin(record, line.to_dict(record.job_id))


def append_event(job_id: str, event: Mapping[str, Any] | str, **fields: Any) -> None:
    """One more line: ``append_event(id, {"event": "note", …})`` or ``append_event(id, "note", …)``.

    Whole lines only, however many processes append; password and token are replaced by a marker.
    """
    told: dict[str, Any] = {"event": event} if isinstance(event, str) else dict(event)
    told |= fields
    if ours := {key: told.pop(key) for key in _NUMBERS if key in told}:
        told["given"] = ours
    line = {"timestamp": fine_stamp(time.time()), "event": "note", **told, "job_id": job_id}
    try:
        # What JSON cannot say is said as text: a history with a path in it beats none.
        plain = json.loads(json.dumps(line, default=str))
    except (TypeError, ValueError, RecursionError) as problem:
        warn(f"the audit log of job {job_id!r:.80} misses a line: {problem}")
        return
    with open_audit() as log:
        log.append(job_id, _without_secrets(plain))


def update_logged_status(job_id: str, status: str) -> None:
    """Only ``status.json``: the status of now, for whoever asks nothing else."""
    try:
        job = Job(check_job_id(job_id), Status.parse(status), updated_at=stamp(time.time()))
    except MamError as problem:
        warn(f"the logged status of job {job_id!r:.80} stays: {problem}")
        return
    with open_audit() as log:
        log.set_status(job)


# -- the audit log, reading --------------------------------------------------------------------


def job_log_path(job_id: str) -> Path:
    """The folder of a job's history, whether it is there or not."""
    with open_audit() as log:
        return Path(log.path) / check_job_id(job_id)


def read_logged_meta(job_id: str) -> dict[str, Any] | None:
    """The record as it was registered, without its secrets; None for a job that is not logged."""
    with open_audit() as log:
        return log.meta(job_id)


def read_logged_status(job_id: str) -> dict[str, Any] | None:
    """``status.json`` as a dict with job_id, status and updated_at; None when there is none."""
    with open_audit() as log:
        return log.status(job_id)


def iter_logged_events(job_id: str) -> Iterator[dict[str, Any]]:
    """The lines in the order they were written; broken ones are skipped."""
    opened = ExitStack()
    log = opened.enter_context(open_audit())  # now: the environment may be another one later
    return _events(opened, log, job_id)


def _events(opened: ExitStack, log: Audit, job_id: str) -> Iterator[dict[str, Any]]:
    with opened:
        yield from log.events(job_id)


def list_logged_jobs() -> list[str]:
    """Every job that has a history, oldest first, also those whose record is gone."""
    with open_audit() as log:
        return log.job_ids()


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: REDACTED if key in _SECRETS and inner is not None else _without_secrets(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(inner) for inner in value]
    return value


def _plain(job: Job) -> dict[str, Any]:
    """Lists and texts, as `json.load` of the file would have them."""
    return codec.loads(codec.encode_job(job))


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)
