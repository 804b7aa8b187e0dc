"""Who is warned of a broker that anybody may use, and how."""

from __future__ import annotations

import pytest

from mam_core.events.public_brokers import public_warning


@pytest.mark.parametrize("host", ["broker.hivemq.com", "Broker.EMQX.io", "test.mosquitto.org."])
def test_a_public_broker_is_warned_of_each_time(host: str) -> None:
    """Decision 2, G26"""
    for _ in range(2):
        said = public_warning(host)
        assert said == f"events go to the public broker {host}: anyone can read and forge them"


def test_the_sentence_says_whose_events_they_are() -> None:
    said = public_warning("broker.emqx.io", "the events of job abc")
    assert said is not None
    assert said.startswith("the events of job abc go to the public broker broker.emqx.io: ")


@pytest.mark.parametrize("host", ["127.0.0.1", "mq.example", "my-broker.hivemq.com.example", ""])
def test_any_other_is_not(host: str) -> None:
    assert public_warning(host) is None
