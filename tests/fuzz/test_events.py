"""Events that anybody may have written: messages, histories, posts on their way.

Faults 15, 16, 30, 34: each is news, or counted and passed over.
"""

from __future__ import annotations

import json
import random

from mam_core.clock import stamp
from mam_core.events.event import Event, EventName, Message
from mam_core.events.inbox import Dropped, Inbox
from mam_core.records import Job, Status
from tests.cli.conftest import Mam
from tests.fuzz.conftest import EVERY_COUNT, Door, Tried, bounded
from tests.fuzz.mutants import ODD_VALUES, batches, mutants
from tests.support.handles import close_later

_TOPIC = "python/mqtt/jobs/open1/events"
_SIGN = {"state": "waiting", "channel": "hook", "rule": "x", "at": 1.8e9, "words": "May I?"}
_TOGETHER = 30


@EVERY_COUNT
def test_as_messages(tried: Tried, count: int) -> None:
    job = Job("open1", Status.RUNNING, topic_prefix="python/mqtt/jobs/open1", attempt=1, last_seq=9)
    corpus = [
        Event("open1", 1, 3, EventName.PROGRESS, "2026-06-19T09:00:00Z", detail="on").encode(None),
        Event("open1", 1, 4, EventName.COMPLETED, "2026-06-19T09:00:00Z").encode("token"),
        Event("open1", 1, 5, "state", "2026-06-19T09:00:00Z", data=_SIGN).encode(None),
    ]
    inbox = Inbox(lambda job_id: job if job_id == "open1" else None)
    news = 0
    for mutant in mutants("messages", corpus, count):
        with bounded(mutant.label):
            answer = inbox.judge(_TOPIC, mutant.data)
            if isinstance(answer, Message):
                answer = inbox.believe(answer, job, None)
        assert isinstance(answer, Message | Dropped), mutant.label
        news += isinstance(answer, Message)
    assert news + sum(inbox.dropped.values()) == count
    tried("messages", count)


@EVERY_COUNT
def test_as_lines_of_a_history(mam: Mam, door: Door, tried: Tried, count: int) -> None:
    """Damaged lines among good ones; whoever reads passes over them, whoever writes goes on."""
    job_id = mam.register()
    mam.ok("pick", "--label", "tmux:a")
    mam.ok("publish", "--job", job_id, "--event", "state", "--data", json.dumps(_SIGN))
    history = mam.folder / ".mam" / "delegate_job_logs" / job_id / "events.ndjson"
    good = history.read_bytes()
    payload = {"event": "progress", "seq": 1, "attempt": 1, "detail": "x", "data": {"cost": 1.5}}
    published = {"n": 9, "event": "published", "seq": 1, "timestamp": stamp(1.8e9)}
    corpus = [*good.splitlines(), json.dumps(published | {"payload": payload}).encode()]
    page = 0
    for batch in batches(mutants("lines", corpus, count), _TOGETHER):
        lines = [*good.splitlines(), *(mutant.data.replace(b"\n", b" ") for mutant in batch)]
        random.Random(batch[0].label).shuffle(lines)
        history.write_bytes(b"\n".join(lines) + b"\n")
        label, page = batch[0].label, page + 1
        for words in (
            *(["logs", job_id], ["logs", job_id, "--json"], ["logs", "--list"], ["why", job_id]),
            *(["why", job_id, "--history"], ["replay", "--at", "-1s"], ["replay", "--span"]),
            *(["attention"], ["list"], ["export", "-o", f"{page}.md", job_id]),
        ):
            door(label, *words)
        door(label, "publish", "--job", job_id, "--event", "progress")
        door(label, "edit", job_id, "--priority", str(page))
    tried("lines of a history", count)


@EVERY_COUNT
def test_as_posts_on_their_way(mam: Mam, door: Door, tried: Tried, count: int) -> None:
    job_id = mam.register()
    mam.ok("publish", "--job", job_id, "--event", "progress", "--detail", "still here")
    outbox = mam.registry / ".outbox"
    (post,) = outbox.glob("*.json")
    good = post.read_bytes()
    for batch in batches(mutants("posts", [good], count), _TOGETHER):
        for number, mutant in enumerate(batch, 2):
            planted = outbox / post.name.replace("1-", f"{number}-", 1)
            planted.write_bytes(mutant.data)
            planted.chmod(0o600)
        label = batch[0].label
        for words in (["list"], ["why", job_id], ["attention"]):
            door(label, *words)
        with bounded(label):
            _taken(mam)
        assert post.read_bytes() == good
        for planted in set(outbox.glob("*.json")) - {post}:
            planted.unlink()
    tried("posts", count)


def _taken(mam: Mam) -> None:
    """As a relay takes them: what is no post is set aside."""
    from mam_core.wiring import open_registry

    registry = close_later(open_registry(str(mam.registry)))
    try:
        posts = registry.store.outbox.posts(10_000)
        assert any(post.seq == 1 for post in posts)
    finally:
        registry.store.close()


def test_odd_values_as_data(mam: Mam, door: Door) -> None:
    """What an agent may publish about itself is anything at all."""
    job_id = mam.register()
    mam.ok("pick", "--label", "tmux:a")
    for number, odd in enumerate(ODD_VALUES):
        data = json.dumps({**_SIGN, "words": odd, "rule": odd, "cost": odd, "tokens": odd})
        name = ("state", "progress")[number % 2]
        door(f"odd/{number}", "publish", "--job", job_id, "--event", name, "--data", data)
        for words in (["why", job_id], ["attention"]):
            door(f"odd/{number}", *words)
