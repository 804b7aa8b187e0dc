"""The one place that picks concrete parts: which store, which audit log, whose name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from mam_core.config import Config, load
from mam_core.errors import MamError
from mam_core.locations import is_inside_attempt, logs_path, registry_place
from mam_core.record_parts import Broker
from mam_core.store_urls import StoreKind, StoreUrl

if TYPE_CHECKING:
    from mam_core.audit_base import Audit
    from mam_core.checkup import Sign
    from mam_core.estate import Estate
    from mam_core.events.broker import EmbeddedBroker
    from mam_core.events.connection import Connection
    from mam_core.events.feed import Feed
    from mam_core.events.mqtt import Client
    from mam_core.registry import Registry
    from mam_core.stores.base import Store
    from mam_core.tmux.facts import Glance, Hand, Server


def open_registry(
    registry_dir: str | None = None,
    *,
    config: Config | None = None,
    allow_network: bool = False,
) -> Registry:
    """The registry that a command, a script or the console works on."""
    # Here, and not above: the console draws its first frame before it opens one.
    from mam_core.registry import Registry

    config = config or load()
    path = registry_place(registry_dir or config.registry_dir).path
    store = open_store(path, config, allow_network=allow_network)
    node = node_name()
    broker = _broker_of_new_jobs(path, config)
    rights = None
    if is_inside_attempt():
        from mam_core.rights import rights_here

        rights = rights_here(path, config)
    strict = config.values.get(("checks", "strict"))
    return Registry(
        store,
        actor=actor(),
        node=node,
        slots=config.slots,
        broker=broker,
        rights=rights,
        strict_checks=strict is not None and strict.value,
    )


def open_store(path: str, config: Config, *, allow_network: bool = False) -> Store:
    """The store that the settings name; `path` is the registry folder of this host."""
    # The value, not the table: making that takes a third of a claim's start-up.
    named = config.values.get(("store", "url"))
    url = StoreUrl.parse(named.value) if named else StoreUrl(StoreKind.FILES)
    return store_at(url, path, config, allow_network=allow_network)


def store_at(
    url: StoreUrl, path: str, config: Config | None = None, *, allow_network: bool = False
) -> Store:
    """The store that `url` names; nothing is opened before it is used."""
    # Each here, and not above: the console draws its first frame before it opens one.
    if url.kind is StoreKind.FILES:
        from mam_core.audit import AuditLog
        from mam_core.stores.files import FilesStore
        from mam_core.stores.index import Index

        audit = AuditLog(logs_path(path))
        logs_events = bool(config and config.logs_events)
        return FilesStore(
            path, audit, catalogue=Index(), allow_network=allow_network, logs_events=logs_events
        )
    from mam_core.stores.sql_store import SqlStore

    if url.kind is StoreKind.SQLITE:
        from mam_core.stores.bell_file import bell_beside
        from mam_core.stores.sqlite import SqliteDatabase

        database = SqliteDatabase(url.place, allow_network=allow_network)
        return SqlStore(
            database, path, logs_path(path), lambda: bell_beside(url.place), url.without_password
        )
    _need("psycopg")
    from mam_core.stores.postgres import PostgresDatabase

    password_file = url.password_file or (config.store.password_file if config else None)
    server = PostgresDatabase(url.without_password_file, password_file)
    # Those whom we start have the right to that file as well; the password itself is told nobody.
    told = StoreUrl(url.kind, url.without_password)
    told = told.with_password_file(os.path.abspath(password_file)) if password_file else told
    return SqlStore(server, path, logs_path(path), server.bell, str(told))


def estate_of(store: Store) -> Estate:
    """All that a store holds, to be carried to another one or from there."""
    from mam_core.stores.files import FilesStore
    from mam_core.stores.sql_store import SqlStore

    if isinstance(store, FilesStore):
        from mam_core.stores.estate_files import FilesEstate

        return FilesEstate(store)
    from mam_core.stores.estate_sql import SqlEstate

    assert isinstance(store, SqlStore)
    return SqlEstate(store)


def checkup_of(store: Store) -> Iterator[Sign]:
    """What a store says about its own health; a folder of records has checks of its own."""
    from mam_core.stores.sql_store import SqlStore
    from mam_core.stores.sqlite import SqliteDatabase

    if not isinstance(store, SqlStore):
        return iter(())
    if isinstance(store.database, SqliteDatabase):
        from mam_core.stores import sqlite_checkup

        return sqlite_checkup.signs(store.database.path)
    from mam_core.stores import postgres_checkup
    from mam_core.stores.postgres import PostgresDatabase, version_of

    assert isinstance(store.database, PostgresDatabase)
    return postgres_checkup.signs(store.database.connected, store.database.place, version_of)


@contextmanager
def open_audit() -> Iterator[Audit]:
    """The audit log of the registry that the environment and the settings name."""
    with closing(open_store(registry_place().path, load())) as store:
        yield store.audit


@contextmanager
def registry_lock(registry_dir: str | None = None) -> Iterator[None]:
    """The lock of the documents, held for a ``with`` block."""
    from mam_core.audit import AuditLog
    from mam_core.stores.files import FilesStore

    path = registry_place(registry_dir).path
    store = FilesStore(path, AuditLog(logs_path(path)))
    try:
        with store.locked():
            yield
    finally:
        store.close()


def embedded_broker(registry_path: str) -> EmbeddedBroker:
    """The registry's own broker, to be started, kept or looked at."""
    from mam_core.events.broker import EmbeddedBroker

    return EmbeddedBroker(registry_path)


def mqtt_client(
    connection: Connection | Callable[[], Connection],
    client_id: str | None = None,
    *,
    clean_session: bool = True,
    manual_ack: bool = False,
) -> Client:
    """A client for a broker, not yet connected; a callable is asked anew before each connect."""
    from mam_core.events.mqtt import new_client

    return new_client(connection, client_id, clean_session=clean_session, manual_ack=manual_ack)


def client_for(
    registry_path: str,
    config: Config,
    broker: Broker | None = None,
    client_id: str | None = None,
    *,
    clean_session: bool = True,
    manual_ack: bool = False,
) -> Client:
    """A client, in the operator's role, for the broker of a record; None: for that of new jobs.

    Where that is, and with which login, is looked up now and before each connect.
    """
    from mam_core.events.connection import resolve

    return mqtt_client(
        lambda: resolve(broker, config, registry_path=registry_path),
        client_id,
        clean_session=clean_session,
        manual_ack=manual_ack,
    )


def open_feed(
    registry_path: str,
    config: Config,
    *,
    jobs: frozenset[str] | None = None,
    with_brokers: bool = True,
    allow_network: bool = False,
    pace_sec: float = 0.0,
) -> Feed:
    """A feed with a registry handle of its own; without brokers, from the directory alone.

    Whoever draws what it tells, and so looks now and then only, may slow it down by `pace_sec`.
    """
    from mam_core.events.feed import Feed

    _need("watchfiles", *(["paho"] if with_brokers else []))

    def connect(broker: Broker | None = None) -> Client:
        return client_for(registry_path, config, broker)

    return Feed(
        open_registry(registry_path, config=config, allow_network=allow_network),
        registry_path=registry_path,
        connect=connect if with_brokers else None,
        connect_to=connect if with_brokers else None,
        jobs=jobs,
        pace_sec=pace_sec,
    )


def realm_key(registry: Registry, registry_path: str) -> str:
    """What those sign with who ask one another about jobs: known to all who can open the store."""
    if (shared := registry.store.secret) is not None:
        return shared
    from mam_core.events.embedded import Role, credentials

    return credentials(registry_path, Role.OPERATOR).password


def tmux_socket(registry_path: str, config: Config) -> str:
    """The name of the socket of the registry's tmux server."""
    from mam_core.tmux.names import socket_name

    return socket_name(registry_path, config.tmux.socket)


def open_tmux(registry_path: str, config: Config) -> Server:
    """The registry's tmux server, to act on; nothing is asked or started yet."""
    from mam_core.tmux.server import TmuxServer

    _need("libtmux")
    return TmuxServer(registry_path, tmux_socket(registry_path, config))


def open_glance(registry_path: str, config: Config) -> Glance:
    """The same server, to be looked at by one lasting client, which the first look starts."""
    from mam_core.tmux.control import TmuxGlance

    return TmuxGlance(registry_path, tmux_socket(registry_path, config))


def pane_hand(tmux_env: str, pane_id: str) -> Hand:
    """The pane that a worker lives in, by its ``$TMUX`` and ``$TMUX_PANE``."""
    from mam_core.tmux.hand import PaneHand

    return PaneHand(tmux_env, pane_id)


def _need(*modules: str) -> None:
    """Libraries that a bare Python has not, asked for before a thread misses them."""
    import sys
    from importlib.util import find_spec

    for name in modules:
        if find_spec(name) is None:
            raise MamError(
                f"this Python ({sys.executable}) has no {name}: install it, "
                "or run the command with the Python of mam's .venv"
            )


def _broker_of_new_jobs(registry_path: str, config: Config) -> Callable[[], Broker]:
    """Where the events of a job go that names no broker: looked up once, at the first such job."""

    @cache
    def found() -> Broker:
        if configured := config.job_defaults().get("broker"):
            return Broker.from_dict(configured)
        from mam_core.events.embedded import address

        return address(registry_path)

    return found


def node_name() -> str:
    """The name that this host goes by."""
    return os.uname().nodename.partition(".")[0]


def actor() -> str:
    """Who acts, for the audit log: the login name, else the user's number."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid {os.getuid()}"


def outbox_path(registry_path: str) -> str:
    """The folder of events that wait for a broker."""
    from mam_core.stores.commit import OUTBOX

    return os.path.join(registry_path, OUTBOX)


def carried_folders() -> tuple[str, ...]:
    """The folders inside a registry folder that go with the records when these move."""
    from mam_core.stores.commit import OUTBOX
    from mam_core.stores.files_transaction import ARCHIVE

    return (ARCHIVE, OUTBOX)
