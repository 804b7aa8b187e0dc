"""A job on another host is looked at from here, over a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mam_core.config import load
from mam_core.errors import MamError
from mam_core.events.keeper import Keeper
from mam_core.nodes import answerer
from mam_core.nodes.answerer import Answerer, Identity
from mam_core.nodes.asking import MAX_ANSWER_BYTES, Answer, NoAnswer, Question, asks_of
from mam_core.operations import elsewhere
from mam_core.operations.answering import answering
from mam_core.operations.artifacts import artifacts
from mam_core.operations.diff import diff
from mam_core.operations.elsewhere import Elsewhere, is_elsewhere
from mam_core.operations.seen import explained
from mam_core.operations.verify import verify
from mam_core.registry import Registry
from mam_core.wiring import client_for, open_registry, realm_key
from tests.support.brokers import embedded, kill_server
from tests.support.patience import PATIENCE_SEC, eventually
from tests.support.working import LABEL, Workshop

HERE, THERE = "oak", "elm"
_Told = TypeVar("_Told")


@pytest.fixture(params=["nats", "mosquitto"])
def broker(request: pytest.FixtureRequest, shop: Workshop) -> Iterator[Keeper]:
    with embedded(shop.path, str(request.param)).ensure_running() as keeper:
        yield keeper


@pytest.fixture
def there(shop: Workshop) -> Iterator[Registry]:
    """The registry as the other host opens it."""
    with open_registry(str(shop.path), config=shop.config) as registry:
        registry.node = THERE
        yield registry


@pytest.fixture
def line(shop: Workshop, broker: Keeper) -> Iterator[Elsewhere]:
    shop.registry.node = HERE
    asks = Elsewhere(str(shop.path), shop.config)
    yield asks
    asks.close()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who answers here does so at once; a worker waits first whether it works for longer."""
    monkeypatch.setattr(answerer, "SETTLE_SEC", 0.0)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is given up and comes all the same would be counted as dropped."""
    monkeypatch.setattr(elsewhere, "PATIENCE_SEC", PATIENCE_SEC)


@contextmanager
def answers_there(shop: Workshop, there: Registry) -> Iterator[Answerer]:
    """From now on, the other host answers."""
    with answering(there, str(shop.path), shop.config) as answers:
        assert answers.listens.wait(PATIENCE_SEC)
        yield answers


def test_what_an_attempt_printed_comes_in_pieces(
    shop: Workshop, there: Registry, line: Elsewhere
) -> None:
    job = shop.run(shop.agent("talks", "behaves"))
    job = job.evolve(node=THERE)
    assert is_elsewhere(shop.registry, job)
    assert not is_elsewhere(shop.registry, job.evolve(node=HERE))
    with answers_there(shop, there):
        printed = eventually(lambda: _or_none(lambda: line.output(shop.registry, job)), "an answer")
        assert printed.attempts == (1,)
        assert printed.attempt == 1
        assert printed.piece.data.decode() == shop.output(job.job_id)
        again = line.output(shop.registry, job, 1, printed.piece.place)
        assert (again.piece.data, again.piece.is_anew) == (b"", False)
        with pytest.raises(MamError, match=r"elm says: .*no output is kept"):
            line.output(shop.registry, job, 7)
        with pytest.raises(MamError, match=r"elm says: job .* has ended"):
            line.screen(shop.registry, job)


def test_why_is_asked_of_the_host_that_knows(
    shop: Workshop, there: Registry, line: Elsewhere
) -> None:
    shop.add(shop.agent("quick", "behaves"))
    job = there.claim(LABEL)
    assert job is not None
    assert job.node == THERE
    with answers_there(shop, there):
        told = eventually(lambda: _or_none(lambda: line.why(shop.registry, job)), "an answer")
    assert any("unsupervised" in sentence for sentence in told)


def test_a_host_that_is_not_there_is_not_waited_for_long(
    shop: Workshop, there: Registry, line: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the record and the events say is told without it."""
    monkeypatch.setattr(elsewhere, "PATIENCE_SEC", 1.0)
    shop.add(shop.agent("quick", "behaves"))
    job = there.claim(LABEL)
    assert job is not None
    with pytest.raises(NoAnswer, match="elm"):
        line.output(shop.registry, job)
    assert line._asker is not None
    assert line._asker._listens.wait(PATIENCE_SEC), "the broker does answer"
    told = explained(shop.registry, line, job.job_id, str(shop.path))
    assert "running as attempt 1 on elm" in told.sentences[0]
    assert "is unknown: elm does not answer" in told.sentences[-1]
    for look_at in (artifacts, diff):
        with pytest.raises(MamError, match=r"its files are there|no worker has started"):
            look_at(shop.registry, job.job_id)
    (outcome,) = verify(shop.registry, [job.job_id])
    assert not outcome.outcome.ok
    assert "its files are there" in outcome.outcome.message


def test_the_line_comes_back_with_its_broker(
    shop: Workshop, there: Registry, line: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = shop.run(shop.agent("quick", "behaves")).evolve(node=THERE)
    monkeypatch.setattr(elsewhere, "PATIENCE_SEC", 1.0)  # a question may go to the dead one
    with answers_there(shop, there) as answers:
        eventually(lambda: _or_none(lambda: line.output(shop.registry, job)), "an answer")
        answers.listens.clear()
        kill_server(shop.path)
        assert answers.listens.wait(PATIENCE_SEC)
        eventually(
            lambda: _or_none(lambda: line.output(shop.registry, job)),
            "an answer by the next broker",
        )


def test_of_two_on_one_host_one_answers_and_the_other_takes_over(
    shop: Workshop, there: Registry, line: Elsewhere
) -> None:
    job = shop.run(shop.agent("quick", "behaves")).evolve(node=THERE)
    with ExitStack() as first:
        first.enter_context(answers_there(shop, there))
        with answering(there, str(shop.path), shop.config) as other:
            assert line.output(shop.registry, job)
            assert not other.listens.is_set()
            first.close()
            assert other.listens.wait(PATIENCE_SEC)
            assert line.output(shop.registry, job), "by the other"


def test_rubbish_and_forgeries_are_dropped_and_counted(
    shop: Workshop, there: Registry, line: Elsewhere
) -> None:
    job = shop.run(shop.agent("quick", "behaves")).evolve(node=THERE)
    stranger = client_for(str(shop.path), shop.config)
    stranger.reach()
    with answers_there(shop, there) as answers:
        eventually(lambda: _or_none(lambda: line.output(shop.registry, job)), "an answer")
        for payload in (b"", b"{", b"x" * 100_000, b'{"kind": "output", "sig": "00"}'):
            stranger.publish(asks_of(there.store.realm, THERE), payload, 1).wait_for_publish(30)
        eventually(lambda: answers.dropped == 4, "all are counted")
        assert line.output(shop.registry, job).piece.data
    stranger.stop()


def test_answers_that_cannot_be_believed_are_dropped_and_counted(
    shop: Workshop, there: Registry, line: Elsewhere
) -> None:
    """Too long, forged, about another job, or the same one again."""
    job = shop.run(shop.agent("quick", "behaves")).evolve(node=THERE)
    realm, key = there.store.realm, realm_key(there, str(shop.path))
    peer: Any = client_for(str(shop.path), shop.config)

    def reply(_client: object, _data: object, message: Any) -> None:
        asked = Question.parse(message.payload, key, realm, time.time())
        right = Answer(asked.id, asked.job_id, {"lines": ["seen"]})
        for payload in (
            b"x" * (MAX_ANSWER_BYTES + 1),
            right.encode("another key"),
            right._replace(job_id="another1").encode(key),
            right.encode(key),
            right.encode(key),
            right._replace(id="nobody-asked").encode(key),
        ):
            peer.publish(asked.reply_to, payload, 1)

    peer.on_message = reply
    try:
        listens_to(peer, asks_of(realm, THERE))
        assert line.screen(shop.registry, job) == ["seen"]
        eventually(lambda: line.dropped == 5, "the others are counted")
    finally:
        peer.stop()


def test_a_question_that_is_sent_again_is_answered_once(
    shop: Workshop, there: Registry, line: Elsewhere
) -> None:
    job = shop.run(shop.agent("quick", "behaves")).evolve(node=THERE)
    heard: list[bytes] = []
    listens: Any = client_for(str(shop.path), shop.config)
    topic = asks_of(there.store.realm, THERE)
    listens.on_message = lambda _client, _data, message: heard.append(message.payload)
    listens_to(listens, topic)
    with answers_there(shop, there) as answers:
        assert line.output(shop.registry, job)
        eventually(lambda: heard, "it was heard")
        before = answers.dropped
        listens.publish(topic, heard[-1], 1).wait_for_publish(30)
        eventually(lambda: answers.dropped == before + 1, "it is counted")
        assert line.dropped == 0
    listens.stop()


def listens_to(client: Any, topic: str) -> None:
    """And what is said from now on is heard."""
    granted = threading.Event()
    client.on_connect = lambda *_: client.subscribe((topic, 1))
    client.on_subscribe = lambda *_: granted.set()
    client.loop_start()
    assert granted.wait(PATIENCE_SEC)


def _or_none(ask: Callable[[], _Told]) -> _Told | None:
    """The host may not listen yet."""
    try:
        return ask()
    except NoAnswer:
        time.sleep(0.1)
        return None


def test_a_host_without_a_folder_of_its_own_answers_too(
    shop: Workshop, there: Registry, line: Elsewhere, tmp_path: Path
) -> None:
    """Where the records are in a database, nothing may have been written there before."""
    job = shop.run(shop.agent("quick", "behaves")).evolve(node=THERE)
    folder = tmp_path / "elsewhere" / "jobs"
    answers = Answerer(
        lambda: client_for(str(shop.path), shop.config),
        str(folder),
        lambda: Identity(there.store.realm, realm_key(there, str(shop.path))),
        THERE,
        lambda asked: {"lines": [asked.job_id]},
    )
    with answers:
        assert answers.listens.wait(PATIENCE_SEC)
        seen = eventually(lambda: _or_none(lambda: line.screen(shop.registry, job)), "an answer")
    assert seen == [job.job_id]


def test_a_host_that_works_before_there_is_a_job_answers_about_the_first(
    tmp_path: Path, shop: Workshop, broker: Keeper
) -> None:
    """A database gives a registry its name and key with its first job: they are not guessed."""
    place = tmp_path / "sqlite.toml"
    place.write_text(f'[store]\nurl = "sqlite:{tmp_path}/jobs.sqlite"\n')
    config, path = load(str(place)), str(shop.path)
    asks = Elsewhere(path, config)
    with open_registry(path, config=config) as there:
        there.node = THERE
        with (
            answering(there, path, config) as answers,
            open_registry(path, config=config) as here,
        ):
            here.node = HERE
            eventually(lambda: here.store.secret, "the registry is made, and has a key")
            request = {"prompt": "true", "agent": "shell", "agent_session": LABEL}
            here.register([request])
            job = there.claim(LABEL)
            assert job is not None
            assert answers.listens.wait(PATIENCE_SEC)
            told = eventually(lambda: _or_none(lambda: asks.why(here, job)), "an answer")
        assert any("unsupervised" in sentence for sentence in told)
    asks.close()
