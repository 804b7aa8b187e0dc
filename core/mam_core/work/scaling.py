"""One pass over the groups: tell this host's figures, and decide, if it is ours to decide.

Of all processes that do this for a registry, on all hosts, one decides: it holds a
lease that stands beside the acts, and is changed with them. Each pass is one
transaction, in which slots and the act that tells of them change together. It
starts and ends no job; whoever claims next goes by the new slots.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from mam_core import acts as papers
from mam_core.acts import Act, Acts, Deed, HostWord
from mam_core.claims import slots_of
from mam_core.clock import fine_stamp
from mam_core.config.tables import AutoscaleSettings, GroupSettings
from mam_core.errors import RegistryMissing
from mam_core.leases import LeaseTerms, is_over, new_lease
from mam_core.machine import Figures
from mam_core.registry import Registry
from mam_core.stores.base import Gates, Paper, Transaction
from mam_core.work.autoscale import Decision, Scaled, Watch, ceiling, decide, rule_for, trouble_with

#: A keeper that does not come back for so many passes has lost its place; a host that does not
#: speak for as long has said nothing.
_PASSES = 3
_UNSAID = GroupSettings(None, None, None, None, None)

#: What the operator's own check says about a group with so many slots; empty: all is well.
Check = Callable[[str, int], str]


class Scaler:
    """One process's part in it."""

    def __init__(
        self,
        registry: Registry,
        settings: AutoscaleSettings,
        groups: Mapping[str, GroupSettings],
        look: Callable[[], Figures | None],
        check: Check | None = None,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._groups = groups
        self._look = look
        self._check = check
        self._owner = f"{registry.node}:{os.getpid()}"
        self._keeps = False

    def go_by(self, settings: AutoscaleSettings, groups: Mapping[str, GroupSettings]) -> None:
        """What the settings say now."""
        self._settings, self._groups = settings, groups

    def once(self) -> list[Act]:
        """What was decided; nothing when that is somebody else's business."""
        seen = self._look()
        known = papers.decode(self._registry.store.paper(Paper.ACTS))
        watched = self._watched(known)
        if seen is None or not (self._settings.enabled or watched):
            return []
        if self._another_keeps(known) and not self._is_silent(known):
            return []
        # Before the transaction: nobody waits for a program of the operator's.
        said = {group: self._checked(group, known) for group in watched}
        try:
            with self._registry.store.transaction() as tx:
                return self._pass(tx, seen, said)
        except RegistryMissing:
            return []

    def leave(self) -> None:
        """Let another one decide, and at once."""
        if not self._keeps:
            return
        try:
            with self._registry.store.transaction() as tx:
                paper = papers.decode(tx.paper(Paper.ACTS))
                if paper.keeper is not None and paper.keeper.owner == self._owner:
                    tx.set_paper(Paper.ACTS, papers.encode(paper._replace(keeper=None)))
        except RegistryMissing:
            return

    # -- a pass ----------------------------------------------------------------------------

    def _pass(self, tx: Transaction, seen: Figures, said: Mapping[str, str]) -> list[Act]:
        paper = papers.decode(tx.paper(Paper.ACTS))
        if self._settings.enabled:
            word = HostWord(self._now, seen.to_dict())
            paper = paper._replace(hosts={**self._fresh(paper), self._registry.node: word})
        if self._another_keeps(paper):
            self._keeps = False
            tx.set_paper(Paper.ACTS, papers.encode(paper))
            return []
        terms = LeaseTerms(self._owner, _PASSES * self._settings.every_sec)
        keeper = new_lease(
            terms,
            self._registry.clock,
            self._registry.node,
            store_time=self._registry.store.now(),
        )
        self._keeps = True
        hosts = _figures_of(paper.hosts) or {self._registry.node: seen}
        gates = tx.gates_to_change()
        done = self._decided(tx, gates, paper, hosts, said)
        for act in done:
            paper = paper.with_act(act)
            if act.deed.is_change:
                gates = gates.with_slots(act.group, act.after)
        if any(act.deed.is_change for act in done):
            tx.set_gates(gates)
        tx.set_paper(Paper.ACTS, papers.encode(paper._replace(keeper=keeper)))
        return done

    def _decided(
        self,
        tx: Transaction,
        gates: Gates,
        paper: Acts,
        hosts: Mapping[str, Figures],
        said: Mapping[str, str],
    ) -> list[Act]:
        free = min(host.memory_free for host in hosts.values())
        done = []
        for name in sorted({*gates.slots, *self._registry.slots}):
            slots = slots_of(name, gates, self._registry.slots)
            watch = self._watch(name, paper, trouble_with(hosts) or said.get(name, ""))
            if slots is None or not (self._settings.enabled or watch):
                continue
            group = self._scaled(name, slots, tx.running_in(name), hosts)
            decision = self._decide(group, hosts, watch, free)
            if decision.deed is Deed.UP:
                free -= group.memory or 0
            done.append(self._act(name, slots, decision, hosts))
        return done

    def _decide(
        self, group: Scaled, hosts: Mapping[str, Figures], watch: Watch | None, free: int
    ) -> Decision:
        if self._settings.enabled:
            return decide(group, hosts, watch, free)
        trouble = watch.trouble if watch is not None else ""
        return Decision(Deed.HOLD, group.slots, trouble or "the change is watched: all is well")

    def _scaled(self, name: str, slots: int, running: int, hosts: Mapping[str, Figures]) -> Scaled:
        said = self._groups.get(name, _UNSAID)
        high = ceiling(said.max, running, hosts, memory=said.memory, cpu=said.cpu)
        return Scaled(slots, running, said.min, high, said.memory)

    def _act(self, name: str, slots: int, decision: Decision, hosts: Mapping[str, Figures]) -> Act:
        _, host = rule_for(hosts)
        figures = {"host": host, **hosts[host].to_dict()}
        at, by = fine_stamp(self._registry.clock.now()), f"autoscaler {self._owner}"
        return Act(at, by, decision.deed, name, slots, decision.slots, decision.why, figures)

    # -- what a change is watched for ------------------------------------------------------

    def _watched(self, paper: Acts) -> list[str]:
        """The groups that changed not long ago."""
        groups = {act.group for act in paper.acts if act.deed.is_change}
        return sorted(group for group in groups if self._watch(group, paper, "") is not None)

    def _watch(self, group: str, paper: Acts, trouble: str) -> Watch | None:
        change = paper.last_change(group)
        if change is None or self._registry.clock.now() - change.moment > self._settings.watch_sec:
            return None
        was_up = change.after is not None and (change.before or 0) < change.after
        return Watch(change.before, change.deed is Deed.UP, was_up, trouble)

    def _checked(self, group: str, paper: Acts) -> str:
        change = paper.last_change(group)
        if self._check is None or change is None or change.after is None:
            return ""
        return self._check(group, change.after)

    # -- who decides -----------------------------------------------------------------------

    @property
    def _now(self) -> float:
        return self._registry.store.now() or self._registry.clock.now()

    def _another_keeps(self, paper: Acts) -> bool:
        keeper = paper.keeper
        if keeper is None or keeper.owner == self._owner:
            return False
        return not is_over(keeper, self._registry.clock, self._registry.store.now())

    def _is_silent(self, paper: Acts) -> bool:
        """This host has not spoken for half a pass: of many processes one does."""
        word = paper.hosts.get(self._registry.node)
        late = word is None or self._now - word.at > self._settings.every_sec / 2
        return self._settings.enabled and late

    def _fresh(self, paper: Acts) -> dict[str, HostWord]:
        oldest = self._now - _PASSES * self._settings.every_sec
        return {node: word for node, word in paper.hosts.items() if word.at > oldest}


def _figures_of(hosts: Mapping[str, HostWord]) -> dict[str, Figures]:
    found = {}
    for node, word in hosts.items():
        try:
            found[node] = Figures.from_dict(dict(word.figures))
        except (ValueError, KeyError, TypeError):
            continue  # a host of another version: it does not count
    return found
