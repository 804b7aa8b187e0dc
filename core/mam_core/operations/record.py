"""One record to be looked at: everything that stands in it but the secrets."""

from __future__ import annotations

from typing import Any, NamedTuple

from mam_core import codec
from mam_core.errors import JobNotFound
from mam_core.operations.get import Foreign, get
from mam_core.records import CHECKSUM, REDACTED, check_job_id
from mam_core.redaction import without_secrets
from mam_core.registry import Registry

_GONE = "its record is gone: this is the job as it was registered, from the audit log"


class Record(NamedTuple):
    """Key by key, in the order of the file."""

    values: dict[str, Any]
    notice: str = ""  #: what is odd about it


def record(registry: Registry, job_id: str) -> Record:
    """Of a job that was cleaned away: as it was registered, from the audit log.

    Raises `JobNotFound`, and `UnreadableRecord` for what is no record of any version.
    """
    try:
        found = get(registry, job_id)
    except JobNotFound:
        if (meta := registry.store.audit.meta(check_job_id(job_id))) is None:
            raise
        return Record(_redacted(meta), _GONE)
    if isinstance(found, Foreign):
        return Record(_redacted(codec.loads(found.stored)), found.notice)
    values: dict[str, Any] = without_secrets(found, found.redacted())
    del values[CHECKSUM]  # nothing that a person would look for
    return Record(values)


def _redacted(values: dict[str, Any]) -> dict[str, Any]:
    """Of another version nothing is known but what the documents have always called a secret."""
    if values.get("auth_token") is not None:
        values["auth_token"] = REDACTED
    broker = values.get("broker")
    if isinstance(broker, dict) and broker.get("password") is not None:
        values["broker"] = {**broker, "password": REDACTED}
    return values
