"""What the top line says at any width: whole items only, the less urgent ones in fewer words.

Where there is not room for everything, each item first gets its short form, in an order that
is written down here; only then are items left out, whole, the least urgent first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from mam_core.safe_text import cell_width, clip, one_line
from mam_tui.faces import FACES
from mam_tui.moments import span, time_of_day

#: States that are always counted, also when there is none.
_ALWAYS = ("waiting", "working", "queued", "error")
#: Of counts that have no room the first to go, by their look; zeros go before all of them.
_LEAST_URGENT = ("done", "idle", "queued", "blocked", "working", "warning", "error", "waiting")
_FILTER_CELLS = (40, 20, 10)


class Standing(NamedTuple):
    """What the bar shows."""

    view: str = "board"
    counts: Mapping[str, int] = {}
    shown: int = 0
    total: int = 0
    marked: int = 0
    filter: str = ""
    link: str = ""  #: trouble with the registry; empty: all is well
    stale_sec: float | None = None  #: how old the picture is, when it is
    paused: int | None = None  #: changes that are held back; None: it is not paused
    read_only: bool = False
    loading: bool = False
    lost_at: float | None = None  #: since when the registry cannot be read
    broker: str = ""  #: why no broker is heard; empty: nothing to say about it
    broker_lost_at: float | None = None  #: since when; None: there was none
    needs: Mapping[str, int] = {}  #: what needs a person, by kind, the most urgent first
    live: str = ""  #: how it hangs together with its registry, while that is well
    public: tuple[str, ...] = ()  #: brokers of live jobs where anybody can read and forge
    broker_where: str = ""  #: which one is offline, where it is not the usual one


class Said(NamedTuple):
    """A piece of the line: its words, and the name of how it looks."""

    words: str
    style: str


class _Item:
    """Its forms from the longest to the shortest; the last one, with no words, is none."""

    def __init__(self, style: str, *forms: str, gap: str = "  ") -> None:
        self.style = style
        self.gap = gap  #: before it
        self._forms = (*forms, "")
        self._at = 0

    @property
    def words(self) -> str:
        return self._forms[self._at]

    @property
    def width(self) -> int:
        return cell_width(self.gap + self.words) if self.words else 0

    def shorten(self) -> None:
        """Never to nothing: that is `leave`."""
        self._at = min(self._at + 1, max(0, len(self._forms) - 2))

    def leave(self) -> None:
        self._at = len(self._forms) - 1


_Step = Callable[[_Item], None]


def status_line(now: Standing, width: int, *, ascii_only: bool = False) -> list[Said]:
    """At most so wide; what is cut in a very narrow terminal is cut by whoever draws it."""
    items = _items(now, ascii_only=ascii_only)
    left = width - sum(item.width for item in items.values())
    for step, chosen in _steps(items, now):
        if left >= 0:
            break
        left += sum(item.width for item in chosen)
        for item in chosen:
            step(item)
        left -= sum(item.width for item in chosen)
    return [Said(item.gap + item.words, item.style) for item in items.values() if item.words]


def badge(needs: Mapping[str, int]) -> tuple[str, str, str]:
    """How many need a person and what for, the same in fewer words, and the number alone."""
    total = sum(needs.values())
    words = f"! {total:,} {'needs' if total == 1 else 'need'} you"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in needs.items())
    return f"{words} ({kinds})", words, f"! {total:,}"


# -- the items, in the order in which they stand -------------------------------------------------


def _items(now: Standing, *, ascii_only: bool) -> dict[str, _Item]:
    items = {"mam": _Item("view", "mam", gap=" ")}
    items["view"] = _Item("view", now.view, now.view.partition(" ")[0].rstrip(","), gap=" ")
    items.update(_flags(now))
    if now.needs:
        items["badge"] = _Item("waiting", *badge(now.needs))
    if now.loading:
        items["loading"] = _Item("muted", "reading the registry …", "reading …")
    gap = "  "
    for word, face in FACES.items():
        number = now.counts.get(word, 0)
        if number or word in _ALWAYS:
            sign = f"{face.ascii if ascii_only else face.glyph} {number}"
            style = face.style if number else "muted"
            items[word] = _Item(style, f"{sign} {word}", sign, gap=gap)
            gap = " "
    for name, words in (("why", now.link), ("why-broker", now.broker)):
        if words:
            items[name] = _Item("muted", clip(one_line(words), 80))
    if now.live:
        items["live"] = _Item("muted", now.live)
    return items


def _flags(now: Standing) -> Iterator[tuple[str, _Item]]:
    if now.lost_at is not None:
        as_of = f"as of {time_of_day(now.lost_at)}"
        age = f"{as_of}, {span(now.stale_sec)} ago"
        lost = "REGISTRY LOST"
        yield "gone", _Item("trouble", f"{lost}, trying again: {age}", f"{lost} {as_of}")
    if now.public:
        others = f" +{len(now.public) - 1}" if len(now.public) > 1 else ""
        words = f"PUBLIC BROKER {clip(one_line(now.public[0]), 30)}{others}"
        yield "public", _Item("trouble", f"{words}: anyone can read", words, "PUBLIC BROKER")
    if now.read_only:
        yield "read-only", _Item("notice", "READ-ONLY")
    if now.paused is not None:
        yield "paused", _Item("notice", f"PAUSED +{now.paused}")
    if now.broker and now.lost_at is None:
        since = now.broker_lost_at
        lost = "NO BROKER" if since is None else f"BROKER LOST {time_of_day(since)}"
        where = f"BROKER {clip(one_line(now.broker_where), 40)} OFFLINE" if now.broker_where else ""
        if where and since is not None:
            lost = f"{where} since {time_of_day(since)}"
        yield "broker", _Item("notice", f"{lost}, reading files", lost, where or "NO BROKER")
    if now.marked:
        yield "marked", _Item("notice", f"{now.marked} marked")
    if now.filter:
        text = one_line(now.filter)
        yield "filter", _Item("notice", *(f"/{clip(text, most)}" for most in _FILTER_CELLS))
    if now.shown != now.total:
        all_of_it = f"showing {now.shown} of {now.total}"
        yield "showing", _Item("muted", all_of_it, f"{now.shown}/{now.total}")


# -- what is given up, in this order -------------------------------------------------------------


def _steps(items: Mapping[str, _Item], now: Standing) -> Iterator[tuple[_Step, list[_Item]]]:
    """The kinds of needs stand on the view of attention: they are the first. All counts have words,
    or none has."""
    counts = [word for word in FACES if word in items]
    ends = sorted(counts, key=lambda word: _urgency(word, now))
    shorten, leave = _Item.shorten, _Item.leave
    plan: list[tuple[_Step, Iterable[Iterable[str]]]] = [
        (shorten, (["badge"],)),
        (leave, (["live"], ["why-broker"])),
        (shorten, (["broker"], counts)),
        (leave, (["why"],)),
        (shorten, (["public"], ["showing"], ["badge"], ["filter"], ["loading"], ["gone"])),
        (shorten, (["public"], ["filter"], ["broker"], ["view"])),
        (leave, (["mam"], *([word] for word in ends))),
        (leave, (["loading"], ["showing"], ["marked"], ["badge"], ["broker"])),
    ]
    for step, groups in plan:
        for names in groups:
            yield step, [items[name] for name in names if name in items]


def _urgency(word: str, now: Standing) -> tuple[bool, int]:
    return bool(now.counts.get(word)), _LEAST_URGENT.index(FACES[word].style)
