"""Reading the configuration, and answering what is set.

The project's file (the nearest ``mam.toml`` from the working directory upward)
wins over the person's (in the XDG folder), key by key, and both over the project's
``*-job-safety`` folder; a flag wins over the environment, and the environment over all.
Every command passes through here, so a command without a file pays for a few system
calls and no parser.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mam_core.config.finding import CONFIG_VARIABLE as CONFIG_VARIABLE
from mam_core.config.finding import find_extensions, find_files
from mam_core.errors import ConfigError

if TYPE_CHECKING:
    from mam_core.config import tables


#: The only variables that win over a file, and what they set.
VARIABLES: Mapping[str, tuple[str, str]] = {
    "MAM_STORE": ("store", "url"),
    "MAM_REGISTRY_DIR": ("store", "registry_dir"),
    "DELEGATE_JOB_LOGS_DIR": ("store", "logs_dir"),
    "MQTT_BROKER": ("broker", "host"),
    "MQTT_PORT": ("broker", "port"),
    "MQTT_TLS": ("broker", "tls"),
    "MQTT_USERNAME": ("broker", "username"),
    "MQTT_PASSWORD": ("broker", "password"),
    "MQTT_CA_CERTS": ("broker", "ca_certs"),
    "MQTT_CERTFILE": ("broker", "certfile"),
    "MQTT_KEYFILE": ("broker", "keyfile"),
    "MQTT_CLIENT_ID_PREFIX": ("broker", "client_id_prefix"),
}

#: A setting's place: (table, key), or (table, name, key) in a table that has one part a name.
KeyPath = tuple[str, ...]


class Value(NamedTuple):
    """What somebody set, and where they did."""

    value: Any
    source: str  #: "file", "environment" or "flag"
    where: str  #: the file's path, the variable, the setting that the flag is for
    find_line: Callable[[], int] | None = None  #: asked for by people only, so counted only then

    @property
    def line(self) -> int | None:
        return self.find_line() if self.find_line else None

    @property
    def origin(self) -> str:
        """In words: ``…/mam.toml:3``, ``environment MQTT_TLS``, ``flag``."""
        if self.source == "file":
            return f"{self.where}:{self.line}"
        return "flag" if self.source == "flag" else f"{self.source} {self.where}"


class Entry(NamedTuple):
    """One line of ``mam config``; a secret's value is already a marker."""

    key: str
    value: Any
    origin: str
    meaning: str


class _Read(NamedTuple):
    """All that the files, the environment and the flags say, and what was made of it."""

    values: Mapping[KeyPath, Value]
    files: tuple[str, ...]
    notices: tuple[str, ...]
    skills: tuple[str, ...]
    made: dict[str, Any]


class Config:
    """All settings; what nobody set is the default. Its tables are made when they are asked for."""

    def __init__(
        self,
        values: Mapping[KeyPath, Value] | None = None,
        files: tuple[str, ...] = (),
        notices: tuple[str, ...] = (),
        skills: tuple[str, ...] = (),
    ) -> None:
        self._read = _Read(values or {}, files, notices, skills, {})

    @property
    def values(self) -> Mapping[KeyPath, Value]:
        return self._read.values

    @property
    def files(self) -> tuple[str, ...]:
        return self._read.files

    @property
    def notices(self) -> tuple[str, ...]:
        """What the operator should know about the choice of files."""
        return self._read.notices

    @property
    def skills(self) -> tuple[str, ...]:
        """The project's own safety rules in words, for agents to read."""
        return self._read.skills

    def copy(self) -> Config:
        """For somebody who renews it without all others."""
        return Config(*self._read[:4])

    def renew(self, newer: Config) -> None:
        """For all who hold these settings, in one step, whatever thread reads them meanwhile."""
        self._read = newer._read

    # -- the tables ------------------------------------------------------------------------

    @property
    def defaults(self) -> tables.Defaults:
        made: tables.Defaults = self._table("defaults")
        return made

    @property
    def store(self) -> tables.StoreSettings:
        made: tables.StoreSettings = self._table("store")
        return made

    @property
    def broker(self) -> tables.BrokerSettings:
        made: tables.BrokerSettings = self._table("broker")
        return made

    @property
    def tmux(self) -> tables.TmuxSettings:
        made: tables.TmuxSettings = self._table("tmux")
        return made

    @property
    def notify(self) -> tables.NotifySettings:
        made: tables.NotifySettings = self._table("notify")
        return made

    @property
    def autoscale(self) -> tables.AutoscaleSettings:
        made: tables.AutoscaleSettings = self._table("autoscale")
        return made

    @property
    def mcp(self) -> tables.McpSettings:
        made: tables.McpSettings = self._table("mcp")
        return made

    @property
    def checks(self) -> tables.ChecksSettings:
        made: tables.ChecksSettings = self._table("checks")
        return made

    @property
    def console(self) -> tables.ConsoleSettings:
        made: tables.ConsoleSettings = self._table("console")
        return made

    @property
    def agents(self) -> Mapping[str, tables.AgentSettings]:
        made: Mapping[str, tables.AgentSettings] = self._table("agents")
        return made

    @property
    def groups(self) -> Mapping[str, tables.GroupSettings]:
        made: Mapping[str, tables.GroupSettings] = self._table("groups")
        return made

    @property
    def templates(self) -> Mapping[str, Mapping[str, Any]]:
        """Fields of `register` by template, as written: a moment like ``+10m`` counts at use."""
        made: Mapping[str, Mapping[str, Any]] = self._table("templates")
        return made

    @property
    def schedules(self) -> Mapping[str, tables.ScheduleSettings]:
        made: Mapping[str, tables.ScheduleSettings] = self._table("schedules")
        return made

    @property
    def deploy(self) -> tables.DeploySettings:
        made: tables.DeploySettings = self._table("deploy")
        return made

    @property
    def audits(self) -> Mapping[str, tables.AuditSettings]:
        made: Mapping[str, tables.AuditSettings] = self._table("audits")
        return made

    @property
    def hosts(self) -> Mapping[str, tables.HostSettings]:
        made: Mapping[str, tables.HostSettings] = self._table("hosts")
        return made

    @property
    def keys(self) -> Mapping[str, str]:
        """The operator's own keys, by action."""
        return self._said("keys")

    @property
    def needs(self) -> Mapping[str, str]:
        """Variables that must be set before any agent is started, and what for."""
        return self._said("needs")

    def _said(self, table: str) -> dict[str, str]:
        return {path[1]: entry.value for path, entry in self.values.items() if path[0] == table}

    # -- what callers want of them ---------------------------------------------------------
    # Claims pass through the next two, so these ask the values and make no tables.

    @property
    def logs_events(self) -> bool:
        """``[store] events_log``, read without the tables, which cost a publish its light start."""
        chosen = self.values.get(("store", "events_log"))
        return bool(chosen and chosen.value)

    @property
    def registry_dir(self) -> str | None:
        """The registry folder that somebody chose; None for the usual place."""
        chosen = self.values.get(("store", "registry_dir"))
        return chosen.value if chosen else None

    def slots(self) -> dict[str, int]:
        """How many jobs of each group may run at once, where the files say."""
        return {
            path[1]: entry.value
            for path, entry in self.values.items()
            if path[0] == "groups" and path[2] == "slots"
        }

    def job_defaults(self) -> dict[str, Any]:
        """The fields that a new job gets when its registration does not say otherwise.

        Only what somebody set: the record has defaults of its own.
        """
        if not self.values:
            return {}
        from mam_core.config.schema import JOB_FIELDS

        given = {
            path[1]: entry.value
            for path, entry in self.values.items()
            if path[0] == "defaults" and path[1] in JOB_FIELDS
        }
        if ("broker", "host") in self.values:
            broker = self.broker
            given["broker"] = {
                "host": broker.host,
                "port": broker.port,
                "tls": broker.tls,
                "username": broker.username,
                "password": broker.secret(),
            }
        return given

    def template(self, name: str) -> Mapping[str, Any]:
        known = self.templates
        if name not in known:
            from mam_core.near_names import did_you_mean

            there = ", ".join(sorted(known)) or "none"
            near = did_you_mean(name, known)
            raise ConfigError(f"there is no template {name!r}; templates: {there}{near}")
        return known[name]

    def folder_of(self, *path: str) -> str | None:
        """The folder of the file that says this; None where no file does."""
        entry = self.values.get(path)
        return os.path.dirname(entry.where) if entry and entry.source == "file" else None

    def origin(self, path: KeyPath) -> str:
        entry = self.values.get(path)
        return entry.origin if entry else "default"

    def entries(self) -> Iterator[Entry]:
        """Every setting with its value and origin, secrets hidden."""
        from mam_core.config.schema import described

        return described(self)

    def _table(self, name: str) -> Any:
        said = self._read
        if name not in said.made:
            from mam_core.config.tables import build

            said.made[name] = build(name, said.values)
        return said.made[name]


def load(
    named: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: str | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration in force; raises `ConfigError` for a mistake in it.

    `named` is ``--config``. `flags` are settings by their dotted name that the
    command line gives.
    """
    environ = os.environ if environ is None else environ
    cwd = cwd or os.getcwd()
    files, notices = find_files(named, environ, cwd)
    extensions, skills, notices = find_extensions(named, environ, cwd, notices)
    set_there = [name for name in VARIABLES if environ.get(name)]
    if not (files or extensions or set_there or flags):
        return Config(notices=notices, skills=skills)
    from mam_core.config import reading

    values: dict[KeyPath, Value] = {}
    if extensions:
        from mam_core.config.safety_schema import EXTENSION

        for path in extensions:
            values |= reading.read_file(path, EXTENSION)
    for path in files:
        values |= reading.read_file(path)
    for name in set_there:
        values[VARIABLES[name]] = reading.read_variable(name, environ[name], cwd)
    for key, value in (flags or {}).items():
        values[tuple(key.split("."))] = reading.read_flag(key, value, cwd)
    reading.check_together(values)
    return Config(values, (*extensions, *files), notices, skills)
