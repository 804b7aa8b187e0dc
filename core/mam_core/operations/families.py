"""All processes of one look, by family: who lives, and what all of a worker's use together."""

from __future__ import annotations

from collections.abc import Iterable

from mam_core.process_mark import ProcessMark
from mam_core.work.processes import Process


class Families:
    """Made once for any number of questions."""

    def __init__(self, everyone: Iterable[Process], boot_id: str) -> None:
        self._boot_id = boot_id
        self._by_pid: dict[int, Process] = {}
        self._children: dict[int, list[Process]] = {}
        for process in everyone:
            self._by_pid[process.pid] = process
            self._children.setdefault(process.parent, []).append(process)

    def has(self, mark: ProcessMark) -> bool:
        """This very process lives."""
        process = self._by_pid.get(mark.pid)
        is_it = process is not None and process.started == mark.started
        return is_it and mark.boot_id == self._boot_id

    def of(self, pid: int) -> list[Process]:
        """The process and all below it; empty when it is gone."""
        if pid not in self._by_pid:
            return []
        found = {pid: self._by_pid[pid]}
        waiting = [pid]
        while waiting:
            for child in self._children.get(waiting.pop(), ()):
                if child.pid not in found:
                    found[child.pid] = child
                    waiting.append(child.pid)
        return list(found.values())
