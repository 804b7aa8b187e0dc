"""Warnings about unknown agents, groups, labels and hosts, which are mostly mistyped.

An unknown name is not refused, since the first job of a group is how a group begins: the verb that
was given it adds a warning to its answer. Where no name is known yet, there is no warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mam_core.errors import RegistryMissing
from mam_core.stores.base import GateKind, Gates, NameKind

if TYPE_CHECKING:
    from mam_core.config import Config
    from mam_core.registry import Registry

_WORDS = {
    NameKind.AGENT: "agent",
    NameKind.LABEL: "label",
    NameKind.GROUP: "group",
    NameKind.NODE: "host",
}
#: What a new or changed job may name.
_OF_A_JOB = (NameKind.AGENT, NameKind.LABEL, NameKind.GROUP)
#: Importing the profiles costs ten milliseconds, which a registration that names one of these is
#: spared; a test compares.
BUILT_IN_AGENTS = frozenset({"aider", "claude-code", "codex", "gemini", "opencode", "shell"})
#: Of more names than these all are compared at once, rather than asked for one by one.
_ONE_BY_ONE = 3
#: So many get a sentence of their own.
_NAMED = 5


def strange_names(
    registry: Registry,
    registry_path: str,
    config: Config,
    requests: Sequence[Mapping[str, Any]],
) -> list[str]:
    """A sentence for each unknown name in the fields of jobs that are about to be registered.

    Called before they are: afterwards each name would be known by its own job.
    """
    found: list[str] = []
    for kind in _OF_A_JOB:
        given = dict.fromkeys(str(one[kind]) for one in requests if one.get(kind))
        found += _strange(registry, registry_path, config, kind, list(given), is_new=True)
    return found


def strange_filter(
    registry: Registry, registry_path: str, config: Config, given: Mapping[str, Any]
) -> list[str]:
    """The same for names that jobs are looked for by: an agent of some job is no mistake here, also
    where no worker could run it."""
    found: list[str] = []
    for kind in NameKind:
        name = given.get(kind)
        if name and not (kind is NameKind.AGENT and registry.store.has(kind, name)):
            found += _strange(registry, registry_path, config, kind, [name])
    return found


def _strange(
    registry: Registry,
    registry_path: str,
    config: Config,
    kind: NameKind,
    given: list[str],
    *,
    is_new: bool = False,
) -> Iterator[str]:
    """In the order of what it costs to know one: by the settings, by a job, by all jobs."""
    names = [name for name in given if not _is_set(config, kind, name)]
    if len(names) <= _ONE_BY_ONE and kind is not NameKind.AGENT:
        names = [name for name in names if not registry.store.has(kind, name)]
    known = known_names(registry, registry_path, config, kind) if names else frozenset()
    names = [name for name in names if known and name not in known]
    if not names:
        return
    from mam_core.near_names import is_mistyped, unknown  # most names are known

    if is_new and kind is NameKind.LABEL:  # every session begins with a new one
        names = [name for name in names if is_mistyped(name, known)]

    for name in names[:_NAMED]:
        yield unknown(_WORDS[kind], name, known)
    if len(names) > _NAMED:
        yield f"{len(names) - _NAMED} more unknown {_WORDS[kind]}s"


def known_names(
    registry: Registry, registry_path: str, config: Config, kind: NameKind
) -> frozenset[str]:
    """All of them."""
    if kind is NameKind.AGENT:
        # Not those of other jobs: a worker runs agents of the settings, and no others.
        return BUILT_IN_AGENTS.union(_said(config, kind))
    names = {*registry.store.names(kind), *_said(config, kind)}
    if kind is NameKind.GROUP:
        names |= _gates(registry).slots.keys()
    else:
        from mam_core.sessions import SessionFolder

        sessions = SessionFolder(registry_path).all()[0]
        if kind is NameKind.LABEL:
            names |= {one.label for one in sessions}
        else:
            drained = (gate.name for gate in _gates(registry).closed if gate.kind is GateKind.NODE)
            names |= {registry.node, *drained, *(one.node for one in sessions)}
    return frozenset(names)


def _is_set(config: Config, kind: NameKind, name: str) -> bool:
    """The settings name it; asked without making tables of them, as by a claim."""
    if kind is NameKind.AGENT and name in BUILT_IN_AGENTS:
        return True
    return name in _said(config, kind)


#: Tables with a part for each name of a kind.
_TABLES = {NameKind.AGENT: "agents", NameKind.GROUP: "groups", NameKind.NODE: "hosts"}
_NAMING = ("defaults", "templates")


def _said(config: Config, kind: NameKind) -> Iterator[str]:
    """The names of that kind that stand in the settings. That a template names an agent makes
    none of it."""
    for path, entry in config.values.items():
        if path[0] == _TABLES.get(kind):
            yield path[1]
        elif path[0] in _NAMING and path[-1] == kind and kind is not NameKind.AGENT:
            yield str(entry.value)


def _gates(registry: Registry) -> Gates:
    try:
        return registry.store.facts().gates()
    except RegistryMissing:
        return Gates()
