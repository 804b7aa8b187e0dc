"""Two copies of a dispatch registry become one, task by task. Pure.

Of two states of a task one wins, by an order that is the same wherever it is asked,
so that copies which met in any order end up the same:

1. the later attempt: an older one never wins, and a pending task that nobody ever
   claimed is the oldest of all;
2. of one attempt, a completed one: work that is done is not done again;
3. of two nodes that claimed one attempt off-line, the earlier claim;
4. of one claim, the later step: claimed, running, released, failed, completed.

So a claim goes back to pending only where somebody released that very claim. Tasks
of other tools have no `attempt`: there the later claim is the later attempt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from mam_core.dispatch.layout import Sheet, Whole, assemble, block_line, compose, parse, read_line
from mam_core.dispatch.tasks import Task, TaskStatus, moment

_STEPS = {
    TaskStatus.CLAIMED: 1,
    TaskStatus.RUNNING: 2,
    TaskStatus.PENDING: 3,
    TaskStatus.FAILED: 4,
    TaskStatus.COMPLETED: 5,
}


def precedence(task: Task) -> tuple[Any, ...]:
    """The higher one wins."""
    had: Mapping[str, Any] = task.released or {}
    since = moment(had.get("started_at")) if task.released is not None else task.since
    node = had.get("node") if task.released is not None else task.node
    is_numbered = task.attempt is not None
    if is_numbered:
        since = -since if since else -math.inf
    return (
        task.number,
        task.status is TaskStatus.COMPLETED,
        is_numbered,
        since,
        str(node or ""),
        _STEPS[task.status] if task.number else 0,
    )


def merge(one: Task, other: Task) -> Task:
    """The one that wins; what other tools wrote into the other and not into it is kept."""
    if one == other:
        return one
    ranks = precedence(one), precedence(other)
    if ranks[0] == ranks[1]:  # neither is later: whichever it is, it must be the same everywhere
        ranks = (_words(one),), (_words(other),)
    loser, winner = (one, other) if ranks[0] < ranks[1] else (other, one)
    return winner._replace(
        spec=loser.spec if winner.spec is None else winner.spec,
        extra={**loser.extra, **winner.extra},
    )


def _words(task: Task) -> str:
    return json.dumps(task.to_dict(), sort_keys=True)


def merge_tasks(ours: Mapping[str, Task], theirs: Mapping[str, Task]) -> dict[str, Task]:
    """In their order; what only we have comes last."""
    merged = dict(theirs)
    for name, task in ours.items():
        merged[name] = merge(task, theirs[name]) if name in theirs else task
    return merged


class Merged(NamedTuple):
    """The two texts afterwards: one and the same list of tasks, each below its own header."""

    ours: bytes
    theirs: bytes
    pulled: int  #: how many tasks are new or different on our side
    pushed: int  #: and on theirs


def merge_sheets(ours: Sheet, theirs: Sheet) -> Merged:
    """Costs what differs, and a comparison of the rest; where the tasks are not in one order, all
    of them are read."""
    block, pulled, pushed = _merged_block(ours.block, theirs.block) or _all_read(ours, theirs)
    ours_head, theirs_head = _heads(ours, theirs)
    return Merged(assemble(ours_head, block), assemble(theirs_head, block), pulled, pushed)


def _all_read(ours: Sheet, theirs: Sheet) -> tuple[bytes, int, int]:
    mine, its = parse(ours.text).tasks, parse(theirs.text).tasks
    merged = merge_tasks(mine, its)
    pulled, pushed = (
        sum(side.get(name) != task for name, task in merged.items()) for side in (mine, its)
    )
    return Sheet(compose(Whole({}, merged))).block, pulled, pushed


def _heads(ours: Sheet, theirs: Sheet) -> tuple[bytes, bytes]:
    """Each keeps its own: a folder of specs is a place on one node. What one lacks, it gets."""
    mine, its = (parse(assemble(sheet.head, b"")).header for sheet in (ours, theirs))
    if mine.keys() == its.keys():
        return ours.head, theirs.head
    both = [{**its, **mine}, {**mine, **its}]
    heads = [Sheet(compose(Whole(header, {}))).head for header in both]
    return heads[0], heads[1]


def _merged_block(ours: bytes, theirs: bytes) -> tuple[bytes, int, int] | None:
    """Line by line where they differ; None when it is not the same task that differs."""
    parts: list[bytes] = []
    i = j = pulled = pushed = 0
    while True:
        same = _common(ours, i, theirs, j)
        # Back to the beginning of the line in which they differ.
        if i + same < len(ours) and j + same < len(theirs):
            same = max(ours.rfind(b"\n", i, i + same + 1), i) - i
        parts.append(theirs[j : j + same])
        i, j = i + same, j + same
        if i == len(ours) or j == len(theirs):
            parts += (ours[i:], theirs[j:])
            pushed += ours.count(b"\n", i)
            pulled += theirs.count(b"\n", j)
            return b"".join(parts), pulled, pushed
        i_end, j_end = _line_end(ours, i), _line_end(theirs, j)
        name, mine = read_line(ours[i:i_end])
        other, its = read_line(theirs[j:j_end])
        if name != other:
            return None
        merged = merge(mine, its)
        pulled += merged != mine
        pushed += merged != its
        parts.append(block_line(name, merged))
        i, j = i_end, j_end


def _line_end(block: bytes, start: int) -> int:
    end = block.find(b"\n", start + 1)
    return len(block) if end < 0 else end


def _common(one: bytes, i: int, other: bytes, j: int) -> int:
    """How many bytes are the same from there on; compared in growing, then in shrinking steps."""
    done, step = 0, 256
    longest = min(len(one) - i, len(other) - j)
    while done < longest:
        step = min(step, longest - done)
        if one[i + done : i + done + step] == other[j + done : j + done + step]:
            done, step = done + step, step * 2
            continue
        while step > 1:
            half = step // 2
            if one[i + done : i + done + half] == other[j + done : j + done + half]:
                done, step = done + half, step - half
            else:
                step = half
        return done
    return done
