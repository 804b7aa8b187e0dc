"""The settings that keep an operator from known failures: schedules, deploys, a project's rules.

Part of the one table in ``schema``. Those of `EXTENSION` may also stand in the ``mam.toml`` of a
``*-job-safety`` folder of the project, see ``extension``.
"""

from __future__ import annotations

from collections.abc import Mapping

from mam_core.config.kinds import Kind, Setting, Table

_TEXT, _WORDS = Kind.TEXT, Kind.WORDS

SAFETY_TABLES: Mapping[str, Table] = {
    "schedules": Table(
        "Jobs that are registered by the clock, one for each moment of the schedule.",
        {
            "every": Setting(Kind.DURATION, 'how often, such as "30m", counted from 1970'),
            "cron": Setting(Kind.CRON, "when: minute hour day month weekday"),
            "timezone": Setting(Kind.ZONE, "whose clock cron means; default: that of the host"),
            "template": Setting(_TEXT, "the [templates.NAME] that the job is made from"),
            "overlap": Setting(Kind.FLAG, "also while its last job is not over", False),
            "catch_up": Setting(Kind.FLAG, "make up for the newest one that was missed", False),
        },
        named=True,
    ),
    "deploy": Table(
        "What `mam deploy` runs in its steps: program and arguments, no shell.",
        {
            "pull": Setting(_WORDS, "gets the new code"),
            "verify": Setting(_WORDS, "says whether it is what was meant"),
            "upgrade": Setting(_WORDS, "installs it"),
            "restart": Setting(_WORDS, "starts anew what has to be"),
            "monitor": Setting(_WORDS, "says whether it does well"),
            "group": Setting(_TEXT, "the jobs that it is about; default: all"),
            "agent_session": Setting(_TEXT, "the same, by label"),
            "timeout_sec": Setting(Kind.SECONDS, "for each step", 600),
        },
    ),
    "needs": Table(
        'Variables that must be set before any agent is started: NAME = "what for".',
        {},
        any_key=Setting(_TEXT, "what it is for"),
    ),
    "audits": Table(
        "What `mam audit` asks beyond its own: exit code 0 means that all is well.",
        {
            "command": Setting(_WORDS, "program and arguments, no shell; run in the file's folder"),
            "timeout_sec": Setting(Kind.SECONDS, "it is ended after this", 30),
            "meaning": Setting(_TEXT, "what is wrong when it fails"),
            "issue": Setting(_TEXT, "where the rule comes from"),
        },
        named=True,
    ),
    "hosts": Table(
        "The hosts of a project as they should be.",
        {
            "cores": Setting(Kind.COUNT, "how many it has"),
            "memory": Setting(Kind.SIZE, "how much it has"),
            "groups": Setting(_WORDS, "the groups whose jobs run there"),
            "note": Setting(_TEXT, "what else is to be known"),
        },
        named=True,
    ),
    "functions": Table(
        'What a project calls the things that rules speak of: RULE_NAME = "its own name".',
        {},
        any_key=Setting(_TEXT, "the project's own name for it"),
    ),
    "issues": Table(
        'Where rules come from: ISSUE = "what happened".',
        {},
        any_key=Setting(_TEXT, "what happened"),
    ),
}

#: What a project's extension may say; memory profiles are those of groups and templates.
EXTENSION = ("groups", "templates", "needs", "audits", "hosts", "functions", "issues")
