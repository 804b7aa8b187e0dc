"""paho, and nothing else of ours knows it: a client made ready for one broker."""

from __future__ import annotations

import os

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from mam_core.events.connection import Connection

#: An unreachable broker must fail in bounded time; the network stack's own patience is minutes.
CONNECT_TIMEOUT_SEC = 5.0
_RECONNECT_SEC = (1, 30)


def new_client(connection: Connection, client_id: str | None = None) -> Client:
    """A client that knows login and TLS, not yet connected.

    Its id is made fresh each time: of two clients with one id the broker throws
    the first one out.
    """
    made = client_id or f"{connection.client_id_prefix}-{os.getpid()}-{os.urandom(4).hex()}"
    client = Client(CallbackAPIVersion.VERSION2, client_id=made)
    client.connect_timeout = CONNECT_TIMEOUT_SEC
    client.reconnect_delay_set(*_RECONNECT_SEC)
    if connection.username is not None:
        client.username_pw_set(connection.username, connection.password)
    if connection.tls:
        client.tls_set(
            ca_certs=connection.ca_certs,
            certfile=connection.certfile,
            keyfile=connection.keyfile,
        )
    return client
