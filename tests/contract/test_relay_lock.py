"""Who is the relay: one at a time, and not one that gives no sign of life."""

from __future__ import annotations

import pytest

from mam_core.errors import StoreError
from mam_core.stores import base
from mam_core.stores.base import Outbox
from tests.contract.conftest import MakeRegistry
from tests.support.jobs import add
from tests.support.patience import eventually


def leads(outbox: Outbox) -> bool:
    try:
        return outbox.beat()
    except StoreError:
        return False


def test_there_is_one_at_a_time_and_then_none(make_registry: MakeRegistry) -> None:
    first, second = make_registry(), make_registry()
    add(first)
    one, two = first.store.outbox, second.store.outbox
    assert two.relay() is None
    with one.relaying() as mine:
        assert mine
        assert leads(one)
        assert two.ring()
        sign = two.relay()
        assert sign is not None
        assert not sign.is_quiet
        with two.relaying() as theirs:
            assert not theirs
        assert leads(one)
    assert two.relay() is None
    assert not two.ring()


def test_one_that_is_silent_is_replaced_and_notices(
    make_registry: MakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "QUIET_SEC", 0.1)
    monkeypatch.setattr(base, "SILENT_SEC", 0.2)
    first, second, other = make_registry(), make_registry(), make_registry()
    add(first)
    one, two, publisher = first.store.outbox, second.store.outbox, other.store.outbox
    with one.relaying() as mine:
        assert mine
        eventually(lambda: (sign := publisher.relay()) and sign.is_silent, "it is silent")
        assert not publisher.ring()
        monkeypatch.undo()
        monkeypatch.setattr(base, "SILENT_SEC", 0.2)
        with two.relaying() as theirs:
            assert theirs
            monkeypatch.undo()
            assert publisher.ring()
            assert leads(two)
            assert not leads(one)
    assert publisher.relay() is None
    with one.relaying() as again:
        assert again
        assert leads(one)
