"""Every question that the doctor asks, in the order in which the answers are shown.

A new one is a function in the module of its area, and a line here.
"""

from __future__ import annotations

from mam_core.doctor import (
    agents,
    artifacts,
    broker,
    clock,
    jobs,
    leavings,
    machine,
    place,
    processes,
    rules,
    sessions,
    store,
    terminal,
    trees,
)
from mam_core.doctor.findings import Area, Check

CHECKS: tuple[Check, ...] = (
    # What stands still is looked at once.
    Check(Area.MACHINE, "Python", machine.python, is_about_registry=False, twice=False),
    Check(Area.MACHINE, "tmux", machine.tmux, is_about_registry=False),
    Check(Area.MACHINE, "git", machine.git, is_about_registry=False, twice=False),
    Check(Area.MACHINE, "system", machine.kernel, is_about_registry=False, twice=False),
    Check(Area.MACHINE, "packages", machine.packages, is_about_registry=False, twice=False),
    Check(Area.MACHINE, "clock", clock.wall, is_about_registry=False, twice=False),
    Check(Area.MACHINE, "jobs from the future", clock.ahead),
    Check(Area.TERMINAL, "kind", terminal.kind, is_about_registry=False, twice=False),
    Check(Area.TERMINAL, "characters", terminal.characters, is_about_registry=False, twice=False),
    Check(Area.TERMINAL, "tmux around it", terminal.around, is_about_registry=False, twice=False),
    Check(Area.AGENTS, "profiles", agents.found, is_about_registry=False, twice=False),
    Check(Area.REGISTRY, "folder", place.there, is_about_registry=False, twice=False),
    Check(Area.REGISTRY, "store", store.health, is_about_registry=False),
    Check(Area.REGISTRY, "disk", place.disk, is_about_registry=False, twice=False),
    Check(Area.REGISTRY, "permissions", place.permissions),
    Check(Area.REGISTRY, "records", place.readable),
    Check(Area.REGISTRY, "size of the records", place.records, twice=False),
    Check(Area.REGISTRY, "prompt files", leavings.prompts),
    Check(Area.REGISTRY, "temp files", leavings.temp_files),
    Check(Area.REGISTRY, "events on their way", leavings.events),
    Check(Area.BROKER, "program", broker.program, is_about_registry=False, twice=False),
    Check(Area.BROKER, "answer", broker.answers, is_about_registry=False),
    Check(Area.BROKER, "its processes", broker.state),
    Check(Area.BROKER, "relay", broker.relay),
    Check(Area.SESSIONS, "records and panes", sessions.standing),
    Check(Area.JOBS, "workers of running jobs", jobs.held),
    Check(Area.JOBS, "supervisors of running jobs", jobs.supervised),
    Check(Area.JOBS, "labels of waiting jobs", jobs.served),
    Check(Area.JOBS, "jobs that cannot run", jobs.can_run),
    Check(Area.PROCESSES, "agents of jobs that run", processes.orphans),
    Check(Area.WORKTREES, "of sessions", trees.of_sessions),
    Check(Area.WORKTREES, "of nobody", trees.of_nobody),
    Check(Area.RULES, "skills", rules.skills, is_about_registry=False, twice=False),
    Check(Area.RULES, "variables", rules.variables, is_about_registry=False, twice=False),
    Check(Area.RULES, "this host", rules.host, is_about_registry=False, twice=False),
)

#: What an audit asks: of the above what is about work, and what costs more than a look.
AUDITED: tuple[Check, ...] = (
    *(
        check
        for check in CHECKS
        if check.area in (Area.REGISTRY, Area.SESSIONS, Area.JOBS, Area.PROCESSES, Area.RULES)
    ),
    Check(Area.JOBS, "artifacts of completed jobs", artifacts.kept, twice=False),
    Check(Area.RULES, "audits", rules.commands, is_about_registry=False, twice=False),
)
