"""The health of a registry in PostgreSQL: is it reached, by whom, with which rights and clock?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from mam_core.checkup import Sign, Weight, fine, version_sign
from mam_core.errors import MamError
from mam_core.stores.postgres_door import Connection, DatabaseError, explained
from mam_core.stores.sql_text import STEPS

#: Stamps of two hosts that are further apart than this look out of order to a person.
_APART_SEC = 2.0
_FAR_APART_SEC = 60.0
_wall = time.time

_ROLE = """SELECT current_user, rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls
    FROM pg_roles WHERE rolname = current_user"""
_RIGHTS = """SELECT tablename, pg_has_role(tableowner, 'MEMBER'), (
        SELECT string_agg(name, ', ')
        FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS name
        WHERE NOT has_table_privilege(format('%I.%I', schemaname, tablename), name))
    FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"""
_LINK = """SELECT inet_server_addr() IS NULL OR inet_server_addr() <<= '127.0.0.0/8'
        OR inet_server_addr() = '::1',
    coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE)"""
_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")


def signs(
    connected: Callable[[], Connection], place: str, version: Callable[..., int]
) -> Iterator[Sign]:
    """Looks only. `place` holds no password."""
    began = time.monotonic()
    try:
        connection = connected()
    except MamError as trouble:
        words = f"{trouble.message}; see that the server runs, and [store] url and its password"
        yield Sign("store", Weight.PROBLEM, words)
        return
    try:
        with connection:
            took = 1000 * (time.monotonic() - began)
            (server,) = _asked(connection, "SHOW server_version")[0]
            yield fine("store", f"PostgreSQL {server}, {place}, reached in {took:.0f} ms")
            yield from _tables(connection, version)
            yield from _clock(connection)
            yield from _link(connection)
            yield from _durability(connection)
    except DatabaseError as trouble:
        words = f"{explained(trouble, place).message}; this could not be looked at"
        yield Sign("store", Weight.WARNING, words)


def _tables(connection: Connection, version: Callable[..., int]) -> Iterator[Sign]:
    ((schema,),) = _asked(connection, "SELECT current_schema()")
    if schema is None:
        words = (
            "the schema that the url names is not there, or not yours to use: "
            "an administrator runs roles.sql"
        )
        yield Sign("schema", Weight.PROBLEM, words)
        return
    found = version(connection)
    yield version_sign(found, len(STEPS))
    (role, is_mighty) = _asked(connection, _ROLE)[0]
    rights = _asked(connection, _RIGHTS)
    lacking = [f"{table} ({names})" for table, _, names in rights if names]
    if found < len(STEPS) and not _may_create(connection):
        words = (
            f"{role} may not make tables, and some are missing: a member of mam_owner comes first"
        )
        yield Sign("rights", Weight.PROBLEM, words)
    elif lacking:
        words = f"{role} lacks rights on {', '.join(lacking)}: an administrator runs roles.sql"
        yield Sign("rights", Weight.PROBLEM, words)
    elif is_mighty:
        words = f"{role} may do far more than mam needs: give hosts a login IN ROLE mam_worker"
        yield Sign("rights", Weight.WARNING, words)
    elif any(owns for _, owns, _ in rights):
        words = f"{role} owns the tables: enough for one person; for hosts, mam_worker is less"
        yield Sign("rights", Weight.NOTE, words)
    else:
        yield fine("rights", f"{role} reads and writes rows, and no more")


def _may_create(connection: Connection) -> bool:
    sql = "SELECT has_schema_privilege(current_schema(), 'CREATE')"
    return bool(_asked(connection, sql)[0][0])


def _clock(connection: Connection) -> Iterator[Sign]:
    asked = _wall()
    ((theirs,),) = _asked(connection, "SELECT extract(epoch FROM clock_timestamp())")
    ahead = (asked + _wall()) / 2 - float(theirs)
    words = f"this host is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the database"
    if abs(ahead) < _APART_SEC:
        yield fine("clock", words)
        return
    weight = Weight.WARNING if abs(ahead) > _FAR_APART_SEC else Weight.NOTE
    yield Sign("clock", weight, f"{words}: leases hold all the same, dates look odd; set it by NTP")


def _link(connection: Connection) -> Iterator[Sign]:
    ((is_near, is_sealed),) = _asked(connection, _LINK)
    if is_near or is_sealed:
        yield fine("link", "stays on this host" if is_near else "is encrypted")
    else:
        words = "prompts and the password cross the network in the clear: add sslmode=verify-full"
        yield Sign("link", Weight.WARNING, words)


def _durability(connection: Connection) -> Iterator[Sign]:
    off = [name for name in _DURABLE if _asked(connection, f"SHOW {name}")[0][0] == "off"]
    if off:
        words = f"{', '.join(off)} = off: a power cut may take jobs with it that were acknowledged"
        yield Sign("durability", Weight.WARNING, words)


def _asked(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql.encode()).fetchall()
