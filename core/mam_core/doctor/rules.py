"""What the project's own rules ask: variables that are set, hosts as they should be, commands."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mam_core import machine
from mam_core.config.tables import AuditSettings
from mam_core.doctor.findings import Area, Finding, note, ok, problem, warning
from mam_core.doctor.ground import Look
from mam_core.locations import ATTEMPT_VARIABLES
from mam_core.operations.skill import in_words, local_rules
from mam_core.work.bounded_process import last_line, run_bounded

_AREA = Area.RULES
#: A kernel keeps some memory for itself, so what a person says is never met exactly.
_NEARLY = 0.9
_GIBIBYTE = 2**30


def variables(look: Look) -> Iterator[Finding]:
    """Without them no agent is started from here."""
    for name, purpose in look.ground.config.needs.items():
        if not os.environ.get(name):
            words = f"it is not set here, and no agent is started without it ({purpose})"
            yield warning(_AREA, f"variable {name}", words)


def skills(look: Look) -> Iterator[Finding]:
    """The project's own rules in words: an auditor should know that they exist."""
    for rules in local_rules(look.ground.config):
        name = os.path.basename(os.path.dirname(rules.path))
        yield note(_AREA, f"skill {name}", in_words(rules))


def host(look: Look) -> Iterator[Finding]:
    """This host as the rules have it: capacity that is counted on and not there is a surprise."""
    said = look.ground.config.hosts.get(look.registry.node)
    if said is None:
        return
    found = machine.look()
    if said.cores is not None and found.cores < said.cores:
        words = f"it should have {said.cores} cores, and has {found.cores}"
        yield warning(_AREA, f"host {look.registry.node}", words, rule="cores")
    if said.memory and found.memory_total and found.memory_total < _NEARLY * said.memory:
        should, has = (f"{size / _GIBIBYTE:.0f} GiB" for size in (said.memory, found.memory_total))
        words = f"it should have {should} of memory, and has {has}"
        yield warning(_AREA, f"host {look.registry.node}", words, rule="memory")
    if said.note:
        yield note(_AREA, f"host {look.registry.node}", said.note, rule="note")


def commands(look: Look) -> Iterator[Finding]:
    """Each audit of the settings, one after the other, each for its own time at most."""
    config = look.ground.config
    for name, audit in sorted(config.audits.items()):
        if audit.command is not None:
            folder = config.folder_of("audits", name, "command") or os.getcwd()
            yield _asked(name, audit, audit.command, folder)


def _asked(name: str, audit: AuditSettings, command: tuple[str, ...], folder: str) -> Finding:
    what = f"audit {name}"
    source = f" ({audit.issue})" if audit.issue else ""
    environ = {k: v for k, v in os.environ.items() if k not in ATTEMPT_VARIABLES}
    try:
        ended = run_bounded(command, folder, environ, audit.timeout_sec)
    except OSError as trouble:
        why = (trouble.strerror or str(trouble)).lower()
        return problem(_AREA, what, f"it cannot be run: {command[0]}: {why}{source}")
    if ended.code == 0:
        return ok(_AREA, what, f"it passed{source}")
    meaning = audit.meaning or f"it {ended.words}"
    return problem(_AREA, what, f"{meaning}{source}{last_line(ended.output)}")
