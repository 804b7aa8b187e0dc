"""Register one job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mam_core.registration import Registered
from mam_core.registry import Registry

if TYPE_CHECKING:
    from mam_core.config import Config

REQUIRED = ("prompt", "agent", "agent_session")


def register(
    registry: Registry,
    request: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
    *,
    allow_collision: bool = False,
) -> Registered:
    """One new job from the record's keys; a live job with the same key is the answer instead.

    `defaults` are for the keys that the request leaves out.
    """
    requests = [with_defaults(request, defaults or {})]
    return registry.register(requests, allow_collision=allow_collision)[0]


def missing(request: Mapping[str, Any]) -> list[str]:
    """What a job cannot do without and nobody said."""
    return [name for name in REQUIRED if name not in request]


def defaults_of(config: Config, template: str = "") -> dict[str, Any]:
    """For the keys that a request leaves out: the template's over those of the settings.

    Raises `ConfigError` for a template that there is not.
    """
    defaults = config.job_defaults()
    return with_defaults(config.template(template), defaults) if template else defaults


def with_defaults(request: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """`request` over `defaults`; a request that names a part of the broker keeps the other parts.

    Where nobody says where a job works, it works where it was registered.
    """
    merged = {**defaults, **request}
    ours, theirs = request.get("broker"), defaults.get("broker")
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        merged["broker"] = {**theirs, **ours}
    if "workdir" not in merged:
        merged["workdir"] = os.getcwd()
    return merged
