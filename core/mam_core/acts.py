"""What was done about groups, by whom and by which figures; and who looks after them now.

One small paper of the registry, in every store alike: it is changed in the same
transaction as the slots that it tells of, and it is bounded, so that it can be
read whole. A decision to leave things as they are that repeats the one before is
counted there, with the newest figures, so that a quiet night does not push out
what happened the day before.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from mam_core import codec
from mam_core.audit import warn
from mam_core.clock import parse_stamp
from mam_core.errors import MamError
from mam_core.record_parts import Lease

#: So many are kept; the oldest leave.
KEPT = 400
_MOST_WORDS = 300
_NO_FIGURES: Mapping[str, Any] = MappingProxyType({})


class Deed(StrEnum):
    """What was done."""

    SET = "set"  #: by a person
    RESET = "reset"  #: by a person: as `mam.toml` has it again
    UP = "up"
    DOWN = "down"
    TAKEN_BACK = "taken back"  #: a step up, because the watch after it saw something
    HOLD = "hold"

    @property
    def is_change(self) -> bool:
        return self is not Deed.HOLD


class Act(NamedTuple):
    """One decision about one group."""

    at: str
    by: str  #: a person, or ``autoscaler`` with its host
    deed: Deed
    group: str
    before: int | None  #: slots; None: any number
    after: int | None
    why: str = ""
    figures: Mapping[str, Any] = _NO_FIGURES
    times: int = 1  #: so often in a row
    since: str = ""  #: of the first of those

    @property
    def moment(self) -> float:
        return parse_stamp(self.at)

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "figures": dict(self.figures)}


class HostWord(NamedTuple):
    """What a host said last about itself."""

    at: float
    figures: Mapping[str, Any]


class Acts(NamedTuple):
    """The paper."""

    acts: tuple[Act, ...] = ()  #: oldest first
    keeper: Lease | None = None  #: the one process that decides
    hosts: Mapping[str, HostWord] = MappingProxyType({})

    def of(self, group: str) -> tuple[Act, ...]:
        return tuple(act for act in self.acts if act.group == group)

    def last(self, group: str) -> Act | None:
        return next((act for act in reversed(self.acts) if act.group == group), None)

    def last_change(self, group: str) -> Act | None:
        changes = (act for act in reversed(self.acts) if act.deed.is_change)
        return next((act for act in changes if act.group == group), None)

    def with_act(self, act: Act) -> Acts:
        act = act._replace(why=act.why[:_MOST_WORDS], since=act.since or act.at)
        kept, before = list(self.acts), self.last(act.group)
        if before is not None and _is_the_same(before, act):
            kept.remove(before)
            act = act._replace(times=before.times + 1, since=before.since)
        return self._replace(acts=(*kept, act)[-KEPT:])


def _is_the_same(before: Act, act: Act) -> bool:
    return not act.deed.is_change and (before.deed, before.after, _gist(before.why)) == (
        act.deed,
        act.after,
        _gist(act.why),
    )


def _gist(why: str) -> str:
    """Without its figures, which differ every time."""
    return "".join(character for character in why if not character.isdigit())


def encode(paper: Acts) -> bytes:
    return codec.dumps(
        {
            "acts": [act.to_dict() for act in paper.acts],
            "keeper": paper.keeper.to_dict() if paper.keeper else None,
            "hosts": {
                node: {"at": word.at, "figures": dict(word.figures)}
                for node, word in paper.hosts.items()
            },
        }
    )


def decode(data: bytes | None) -> Acts:
    """What nobody can read is warned of, and begun anew: no slot hangs on it."""
    if data is None:
        return Acts()
    try:
        said = codec.loads(data)
        return Acts(
            tuple(_act(one) for one in said["acts"]),
            Lease.from_dict(said["keeper"]) if said["keeper"] else None,
            {
                str(node): HostWord(float(word["at"]), dict(word["figures"]))
                for node, word in said["hosts"].items()
            },
        )
    except (MamError, KeyError, TypeError, ValueError, AttributeError) as problem:
        warn(f"what was done about groups cannot be read, and is begun anew: {problem}")
        return Acts()


def _act(said: Mapping[str, Any]) -> Act:
    act = Act(
        str(said["at"]),
        str(said["by"]),
        Deed(said["deed"]),
        str(said["group"]),
        _slots(said["before"]),
        _slots(said["after"]),
        str(said["why"]),
        dict(said["figures"]),
        int(said["times"]),
        str(said["since"]),
    )
    parse_stamp(act.at)
    return act


def _slots(value: object) -> int | None:
    return None if value is None else int(str(value))
