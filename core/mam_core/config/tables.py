"""The settings as frozen records, for callers that want types. Names are those of the schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mam_core.config.loading import KeyPath, Value
from mam_core.config.schema import TABLES
from mam_core.errors import ConfigError
from mam_core.frozen import frozen

_MAX_PASSWORD_BYTES = 4096


@frozen
class Defaults:
    """``[defaults]``: what a job gets that does not say otherwise, and how long workers wait."""

    timeout_sec: float
    idle_timeout_sec: float
    tool_timeout_sec: float
    agent: str | None
    agent_session: str | None
    model: str | None
    max_attempts: int
    group: str | None
    priority: int
    memory_max: int | None
    max_cost: float | None
    max_tokens: int | None
    retry_sec: float
    retry_factor: float
    retry_max_sec: float
    output_max: int
    heartbeat_sec: float
    lease_sec: float
    sweep_sec: float
    grace_sec: float
    memory_cap: str


@dataclass(frozen=True)
class StoreSettings:
    """``[store]``; None means the usual place."""

    url: str = field(repr=False)
    password_file: str | None
    registry_dir: str | None
    logs_dir: str | None
    events_log: bool


@dataclass(frozen=True)
class BrokerSettings:
    """``[broker]``; without a host the embedded broker of the registry is meant."""

    host: str | None
    port: int
    tls: bool
    username: str | None
    password_file: str | None
    password: str | None = field(repr=False)
    ca_certs: str | None
    certfile: str | None
    keyfile: str | None
    client_id_prefix: str

    def secret(self) -> str | None:
        """The password: the environment's, else what the password file holds."""
        if self.password is not None or self.password_file is None:
            return self.password
        return read_password(self.password_file)


@frozen
class TmuxSettings:
    """``[tmux]``"""

    socket: str | None


@dataclass(frozen=True)
class AgentSettings:
    """``[agents.NAME]``; None leaves it to the built-in profile of that name."""

    command: tuple[str, ...] | None
    prompt: str | None
    mode: str | None
    stream: str | None
    env: Mapping[str, str] | None = field(repr=False)
    needs: tuple[str, ...] | None
    model_flag: str | None
    resume: tuple[str, ...] | None
    memory: int | None
    may: tuple[str, ...] | None


@frozen
class GroupSettings:
    """``[groups.NAME]``; None means no limit, or not known."""

    slots: int | None
    min: int | None
    max: int | None
    memory: int | None
    cpu: float | None


@frozen
class AutoscaleSettings:
    """``[autoscale]``"""

    enabled: bool
    every_sec: float
    watch_sec: float
    check: tuple[str, ...] | None


@frozen
class ChecksSettings:
    """``[checks]``"""

    strict: bool


@frozen
class NotifySettings:
    """``[notify]``"""

    command: tuple[str, ...] | None
    bell: bool
    terminal: str
    min: str
    debounce_sec: float


@frozen
class McpSettings:
    """``[mcp]``"""

    workdirs: tuple[str, ...] | None  #: None: decided by where it was started


@frozen
class ConsoleSettings:
    """``[console]``"""

    theme: str | None
    glyphs: str
    mouse: bool
    columns: tuple[str, ...] | None


@frozen
class ScheduleSettings:
    """``[schedules.NAME]``; one of `every` and `cron` is there."""

    every: float | None
    cron: str | None
    timezone: str | None
    template: str
    overlap: bool
    catch_up: bool


@frozen
class DeploySettings:
    """``[deploy]``; None means that a step runs nothing of the user's."""

    pull: tuple[str, ...] | None
    verify: tuple[str, ...] | None
    upgrade: tuple[str, ...] | None
    restart: tuple[str, ...] | None
    monitor: tuple[str, ...] | None
    group: str | None
    agent_session: str | None
    timeout_sec: float


@frozen
class AuditSettings:
    """``[audits.NAME]``"""

    command: tuple[str, ...] | None
    timeout_sec: float
    meaning: str | None
    issue: str | None


@frozen
class HostSettings:
    """``[hosts.NAME]``; None means that nobody said."""

    cores: int | None
    memory: int | None
    groups: tuple[str, ...] | None
    note: str | None


_RECORDS: Mapping[str, type[Any]] = {
    "defaults": Defaults,
    "store": StoreSettings,
    "broker": BrokerSettings,
    "tmux": TmuxSettings,
    "agents": AgentSettings,
    "groups": GroupSettings,
    "autoscale": AutoscaleSettings,
    "checks": ChecksSettings,
    "notify": NotifySettings,
    "mcp": McpSettings,
    "console": ConsoleSettings,
    "schedules": ScheduleSettings,
    "deploy": DeploySettings,
    "audits": AuditSettings,
    "hosts": HostSettings,
}


def build(name: str, values: Mapping[KeyPath, Value]) -> Any:
    """A table's record, or its records by name."""
    said = {path[1:]: entry.value for path, entry in values.items() if path[0] == name}
    if not TABLES[name].named:
        return _complete(name, {path[0]: value for path, value in said.items()})
    parts: dict[str, dict[str, Any]] = {}
    for (part, key), value in said.items():
        parts.setdefault(part, {})[key] = value
    if name == "templates":
        return parts
    return {part: _complete(name, given) for part, given in parts.items()}


def _complete(name: str, given: Mapping[str, Any]) -> Any:
    settings = TABLES[name].settings
    return _RECORDS[name](**{key: given.get(key, settings[key].default) for key in settings})


def read_password(path: str) -> str:
    """The content of a password file, without the newline that editors leave at its end."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_MAX_PASSWORD_BYTES + 1)
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise ConfigError(f"the password file {path} cannot be read: {why}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the password file {path} is not UTF-8") from None
    password = text.rstrip("\r\n")
    if not password or len(text) > _MAX_PASSWORD_BYTES or "\n" in password:
        raise ConfigError(f"the password file {path} must hold one line, the password")
    return password
