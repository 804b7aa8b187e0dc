"""Sessions on record against the panes that tmux has. What tmux does not tell is no finding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mam_core.doctor.adoption import adopt, is_of_another_registry, session_in
from mam_core.doctor.findings import Area, Finding, Fix, Mended, note, problem, warning
from mam_core.doctor.ground import Ground, Look
from mam_core.errors import MamError
from mam_core.operations.restore import restore
from mam_core.operations.sessions import Seen, SessionState, by_session
from mam_core.operations.stop import stop
from mam_core.sessions import check_name
from mam_core.tmux.facts import PaneFact
from mam_core.work.workers_here import command_of, options_of_worker

_AREA = Area.SESSIONS
_BY_HAND = "look at it with `mam attach`, and end it in tmux if nobody needs it"


def standing(look: Look) -> Iterator[Finding]:
    """Record and pane of each session, as they stand to each other."""
    if look.tmux_trouble:
        return
    for seen in look.sessions:
        if seen.state is SessionState.GONE:
            yield _gone(look.ground, seen)
        elif seen.state is SessionState.DEAD:
            yield _dead(look.ground, seen)
        elif seen.state is SessionState.STOPPING and seen.pane is None:
            yield _ending(seen)
        elif seen.state is SessionState.UNRECORDED and seen.pane is not None:
            yield from _unrecorded(look.ground, seen.pane)
        elif seen.state is SessionState.DAMAGED:
            yield _damaged(look, seen)


def _gone(ground: Ground, seen: Seen) -> Finding:
    other = f" ({seen.note})" if seen.note else ""
    words = f"it is on record, and tmux has no pane of it{other}"
    forget = Fix(
        f"forget session {seen.name}", partial(stop_session, ground, seen.name), is_safe=False
    )
    fix = Fix(
        f"restore session {seen.name}", partial(_restore, ground, seen.name), otherwise=forget
    )
    return problem(_AREA, f"session {seen.name}", words, fix, "gone")


def _dead(ground: Ground, seen: Seen) -> Finding:
    """One that ended in order was meant to; one that broke was not."""
    what = f"session {seen.name}"
    act = partial(stop_session, ground, seen.name)
    if seen.pane is not None and seen.pane.exit_code == 0:
        words = "its worker has ended in order, and its dead pane is left"
        return warning(_AREA, what, words, Fix(f"remove {what}", act), "dead")
    remove = Fix(f"remove {what}", act, is_safe=False)
    fix = Fix(f"restore {what}", partial(_restore, ground, seen.name), otherwise=remove)
    return problem(_AREA, what, f"its worker is {seen.words}", fix, "dead")


def _ending(seen: Seen) -> Finding:
    pid = f" (pid {seen.worker.pid})" if seen.worker else ""
    words = f"its pane is gone, and its worker{pid} is still ending what it had"
    return note(_AREA, f"session {seen.name}", words, rule="ending")


def _unrecorded(ground: Ground, pane: PaneFact) -> Iterator[Finding]:
    what = f"session {pane.session}"
    if pane.dead:
        # On a server that others share, a dead pane no longer tells whose it was.
        is_surely_ours = ground.config.tmux.socket is None
        end = Fix(f"remove {what}", partial(_end, ground, pane))
        words = "it is in tmux with our mark, dead, and there is no record of it"
        fix, advice = (end, "") if is_surely_ours else (None, _BY_HAND)
        yield warning(_AREA, what, words, fix, "unrecorded", advice)
        return
    if is_of_another_registry(ground, pane):
        return
    session = session_in(ground, pane)
    if session is not None:
        words = f"its worker (pid {pane.pid}) is alive, and there is no record of it"
        stop_it = Fix(f"stop {what}", partial(_adopt_and_stop, ground, pane), is_safe=False)
        take = Fix(f"put {what} on record", partial(adopt, ground, pane), otherwise=stop_it)
        yield problem(_AREA, what, words, take, "unrecorded")
        return
    words = f"it carries our mark, there is no record of it, and its process (pid {pane.pid}) "
    if options_of_worker(command_of(pane.pid)) is None:
        end = Fix(f"end {what} with what runs in it", partial(_end, ground, pane), is_safe=False)
        yield warning(_AREA, what, words + "is no worker of ours", end, "unrecorded")
    else:
        words += "does not tell enough to put it on record"
        yield warning(_AREA, what, words, advice=_BY_HAND)


def _damaged(look: Look, seen: Seen) -> Finding:
    """Its file can be written anew from its worker, if that lives; else it is a person's."""
    what, words = f"session {seen.name}", f"its file cannot be read: {seen.note}"
    pane = by_session(look.panes()).get(seen.name)
    fix = None
    if pane is not None and _is_name(seen.name) and session_in(look.ground, pane) is not None:
        fix = Fix(f"write the record of {what} anew", partial(adopt, look.ground, pane))
    else:
        words += f"; remove it from {look.ground.sessions.path}"
    return problem(_AREA, what, words, fix, "damaged")


def _is_name(name: str) -> bool:
    try:
        check_name(name)
    except MamError:
        return False
    return True


# -- what is done about it ---------------------------------------------------------------------


def _restore(ground: Ground, name: str) -> Mended:
    outcomes = restore(
        ground.registry_path,
        ground.config,
        lambda _: None,
        allow_network=ground.allow_network,
        names=frozenset({name}),
    )
    for one in outcomes:
        return Mended(not one.is_trouble, one.message)
    return Mended(True, f"session {name} is no longer on record")


def stop_session(ground: Ground, name: str) -> Mended:
    """As `mam stop` does it: pane and record go, and a worktree by which nothing is lost."""
    said: list[str] = []
    outcomes = stop(
        ground.registry,
        ground.registry_path,
        ground.config,
        name,
        now=False,
        tell=said.append,
    )
    return Mended(
        all(one.is_over for one in outcomes), "; ".join([*said, *(one.message for one in outcomes)])
    )


def _adopt_and_stop(ground: Ground, pane: PaneFact) -> Mended:
    """Its worker is asked as that of any session: what it runs now is finished first."""
    adopted = adopt(ground, pane)
    return stop_session(ground, pane.session) if adopted.is_done else adopted


def _end(ground: Ground, pane: PaneFact) -> Mended:
    """Only the session that was looked at: its pane's number is never given out twice."""
    server = ground.tmux()
    still = any(
        (one.pane_id, one.session, one.pid) == (pane.pane_id, pane.session, pane.pid)
        for one in server.panes()
    )
    if not still:
        return Mended(True, f"session {pane.session} is gone")
    server.end(pane.session)
    return Mended(True, f"session {pane.session} is ended")
