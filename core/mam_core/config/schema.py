"""Every setting there is, as data: what it means, what it may be, what it is when nobody says.

Reading, ``mam config`` and the manual are made from this one table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mam_core.config.kinds import Kind as Kind
from mam_core.config.kinds import Setting as Setting
from mam_core.config.kinds import Table as Table
from mam_core.config.loading import Config, Entry, KeyPath, Value
from mam_core.config.safety_schema import SAFETY_TABLES
from mam_core.fields import SETTABLE
from mam_core.records import (
    DEFAULT_IDLE_TIMEOUT_SEC,
    DEFAULT_TIMEOUT_SEC,
    DEFAULT_TOOL_TIMEOUT_SEC,
    REDACTED,
)
from mam_core.rights import Right

_TEXT, _SECONDS, _PATH, _FIELD = Kind.TEXT, Kind.SECONDS, Kind.PATH, Kind.FIELD

TABLES: Mapping[str, Table] = {
    "defaults": Table(
        "What a job gets that does not say otherwise, and how long workers wait.",
        {
            "timeout_sec": Setting(_FIELD, "wall clock of a job", DEFAULT_TIMEOUT_SEC),
            "idle_timeout_sec": Setting(_FIELD, "longest silence", DEFAULT_IDLE_TIMEOUT_SEC),
            "tool_timeout_sec": Setting(
                _SECONDS,
                "how long an open tool call may hold the idle clock",
                DEFAULT_TOOL_TIMEOUT_SEC,
            ),
            "agent": Setting(_FIELD, "agent of a job that names none"),
            "agent_session": Setting(_FIELD, "label of a job that names none"),
            "model": Setting(_FIELD, "model that the agent is asked to use"),
            "max_attempts": Setting(_FIELD, "failures until a job ends as error", 1),
            "group": Setting(_FIELD, "group of a job that names none"),
            "priority": Setting(_FIELD, "higher is claimed first", 0),
            "memory_max": Setting(_FIELD, 'memory of one job, such as "8G"'),
            "max_cost": Setting(_FIELD, "US dollars that one attempt may cost"),
            "max_tokens": Setting(_FIELD, "tokens that one attempt may use"),
            "retry_sec": Setting(_SECONDS, "pause before the first automatic retry", 10),
            "retry_factor": Setting(Kind.NUMBER, "each further pause is so much longer", 2),
            "retry_max_sec": Setting(_SECONDS, "no pause is longer than this", 600),
            "output_max": Setting(Kind.SIZE, "output that is kept of one attempt", 64 * 2**20),
            "heartbeat_sec": Setting(_SECONDS, "a worker renews its lease at least this often", 10),
            "lease_sec": Setting(_SECONDS, "a job without a heartbeat is lost after this", 30),
            "sweep_sec": Setting(_SECONDS, "lost and late jobs are looked for this often", 5),
            "grace_sec": Setting(_SECONDS, "between asking a process to end and ending it", 5),
            "memory_cap": Setting(
                _TEXT,
                "who holds a job to its memory; auto: the kernel where it can, sampled: we, four "
                "times a second, off: nobody",
                "auto",
                choices=("auto", "sampled", "off"),
            ),
        },
    ),
    "store": Table(
        "Where the records are.",
        {
            "url": Setting(Kind.STORE, "where the records are kept", "files", secret=True),
            "password_file": Setting(_PATH, "a file with the password of the database"),
            "registry_dir": Setting(_PATH, "the registry folder"),
            "logs_dir": Setting(_PATH, "the audit log's folder", in_file=False),
            "events_log": Setting(
                Kind.FLAG,
                "for debugging: keep the events of each job in JOB_ID.events.log beside its "
                "record, at most 4 MB of them (records in files only)",
                False,
            ),
        },
    ),
    "broker": Table(
        "Where events go. Without a host: the embedded broker of the registry.",
        {
            "host": Setting(_TEXT, "name or address"),
            "port": Setting(Kind.PORT, "its port", 1883),
            "tls": Setting(Kind.FLAG, "talk TLS", False),
            "username": Setting(_TEXT, "login name"),
            "password_file": Setting(_PATH, "a file that holds the password and nothing else"),
            "password": Setting(_TEXT, "the password itself", secret=True, in_file=False),
            "ca_certs": Setting(_PATH, "who signs the broker's certificate; default: the system's"),
            "certfile": Setting(_PATH, "our own certificate"),
            "keyfile": Setting(_PATH, "its key"),
            "client_id_prefix": Setting(_TEXT, "how our client ids begin", "mam"),
        },
    ),
    "tmux": Table(
        "The tmux server of the agents' sessions.",
        {"socket": Setting(_TEXT, "its socket name; default: made from the registry's path")},
    ),
    "agents": Table(
        "How an agent is started; what is left out is that of the built-in profile.",
        {
            "command": Setting(
                Kind.WORDS,
                "program and arguments, no shell; may hold {options}, {prompt_file}, {prompt}",
            ),
            "prompt": Setting(
                _TEXT, "how the prompt reaches it", choices=("stdin", "file", "argument")
            ),
            "mode": Setting(
                _TEXT,
                "how it runs; interactive: live in a session's pane, and its prompt is pasted",
                choices=("exec", "stream", "interactive"),
            ),
            "stream": Setting(
                _TEXT,
                "the form of its output",
                choices=(
                    *("stream-json", "codex-json", "gemini-stream-json", "gemini-json"),
                    *("opencode-json", "aider", "plain"),
                ),
            ),
            "env": Setting(Kind.PAIRS, "variables that it gets", secret=True),
            "needs": Setting(Kind.NAMES, "variables that must be set before it is started"),
            "model_flag": Setting(_TEXT, "the option that names the model"),
            "resume": Setting(
                Kind.WORDS, "arguments that take up an earlier session, named {session}"
            ),
            "memory": Setting(
                Kind.SIZE, "memory of its job where neither the job nor its group says"
            ),
            "may": Setting(
                Kind.SOME,
                "what it may do from inside an attempt, besides reporting on its own job, "
                "registering jobs and reading",
                choices=tuple(Right),
            ),
        },
        named=True,
    ),
    "groups": Table(
        "Jobs that share slots and size.",
        {
            "slots": Setting(Kind.COUNT, "how many may run at once, on all hosts together"),
            "min": Setting(Kind.COUNT, "slots are never scaled below this; 1 when not said"),
            "max": Setting(Kind.COUNT, "slots are never scaled above this"),
            "memory": Setting(
                Kind.SIZE, "memory that one job needs, and its limit where the job says none"
            ),
            "cpu": Setting(Kind.NUMBER, "cores that one job needs"),
        },
        named=True,
    ),
    "autoscale": Table(
        "Whether the slots of groups follow the load of the hosts, one step at a time.",
        {
            "enabled": Setting(Kind.FLAG, "let them; else a person does", False),
            "every_sec": Setting(_SECONDS, "between two decisions", 60),
            "watch_sec": Setting(_SECONDS, "so long a change is watched", 300),
            "check": Setting(
                Kind.WORDS,
                "program that is run while a change is watched, no shell; another exit code than "
                "0 takes the step back; MAM_GROUP and MAM_SLOTS say which",
            ),
        },
    ),
    "checks": Table(
        "The checks that jobs bring along (`--validate`).",
        {
            "strict": Setting(
                Kind.FLAG,
                "a job fails whose check runs a script of its folder that changed since it was "
                "registered; else the result only says so",
                False,
            ),
        },
    ),
    "templates": Table(
        "Fields of `mam register` under a name.",
        {name: Setting(_FIELD, "as `mam register` takes it") for name in SETTABLE},
        named=True,
    ),
    "notify": Table(
        "What is told to a person who does not look.",
        {
            "command": Setting(
                Kind.WORDS,
                "program that is run when a job needs a person, no shell; MAM_NOTIFY_* say which",
            ),
            "bell": Setting(Kind.FLAG, "ring the terminal's bell", True),
            "terminal": Setting(
                _TEXT,
                "how the terminal is asked to show it; auto: only where it is known to do so",
                "auto",
                choices=("auto", "osc9", "osc777", "off"),
            ),
            "min": Setting(
                _TEXT,
                "how urgent it must be; high: an agent asks, low: a quota that ends by itself",
                "normal",
                choices=("low", "normal", "high"),
            ),
            "debounce_sec": Setting(_SECONDS, "at most one call in this time", 10),
        },
    ),
    "mcp": Table(
        "What `mam mcp --allow-write` may be asked for by an agent.",
        {
            "workdirs": Setting(
                Kind.PATHS,
                "jobs may work in these folders and below; default: the folder that the server was "
                "started in, and the one that holds the registry",
            ),
        },
    ),
    "console": Table(
        "How the console looks.",
        {
            "theme": Setting(_TEXT, "its colours"),
            "glyphs": Setting(_TEXT, "its signs", "auto", choices=("auto", "unicode", "ascii")),
            "mouse": Setting(Kind.FLAG, "listen to the mouse", True),
            "columns": Setting(Kind.WORDS, "columns of the job table, in order"),
        },
    ),
    "keys": Table(
        'The operator\'s own keys: ACTION = "key".',
        {},
        any_key=Setting(_TEXT, "the key of this action"),
    ),
    **SAFETY_TABLES,
}

#: The defaults that are fields of a job's record.
JOB_FIELDS = frozenset(TABLES["defaults"].settings) & frozenset(SETTABLE)

#: Greedy: a password with an unescaped @ in it is hidden whole.
_URL_PASSWORD = re.compile(r"(://[^:/@]*:).*@|(password=)[^&\s]*")


def setting_at(path: KeyPath) -> Setting | None:
    """The setting at a place, if there can be one."""
    table = TABLES.get(path[0])
    if table is None or len(path) != (3 if table.named else 2):
        return None
    return table.settings.get(path[-1], table.any_key)


def described(config: Config) -> Iterator[Entry]:
    """What ``mam config`` shows, in the order of the tables above."""
    for name, table in TABLES.items():
        if not table.named and table.any_key is None:
            for key, setting in table.settings.items():
                yield _entry((name, key), setting, config.values.get((name, key)))
            continue
        for path in sorted(path for path in config.values if path[0] == name):
            setting_there = setting_at(path)
            if setting_there is not None:
                yield _entry(path, setting_there, config.values[path])


def _entry(path: KeyPath, setting: Setting, said: Value | None) -> Entry:
    value = said.value if said else setting.default
    if setting.secret and value is not None:
        value = _hidden(path, value)
    return Entry(dotted(path), value, said.origin if said else "default", setting.meaning)


def _hidden(path: KeyPath, value: Any) -> Any:
    if path == ("store", "url"):
        return _URL_PASSWORD.sub(_without_password, value)
    if isinstance(value, Mapping):
        return dict.fromkeys(value, REDACTED)
    return REDACTED


def _without_password(match: re.Match[str]) -> str:
    return f"{match[1]}{REDACTED}@" if match[1] else f"{match[2]}{REDACTED}"


def dotted(path: KeyPath) -> str:
    """The key as the file would have it: a part that is no bare word in quotes."""
    import json  # its escapes are those of TOML

    bare = re.compile(r"[A-Za-z0-9_-]+")
    return ".".join(p if bare.fullmatch(p) else json.dumps(p, ensure_ascii=False) for p in path)
