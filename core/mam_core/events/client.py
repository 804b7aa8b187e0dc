"""What we ask of an MQTT client. `mqtt` makes real ones; nobody else has to know paho for it."""

from __future__ import annotations

from typing import Any, Protocol


class Client(Protocol):
    """The part of paho's client that listening needs (callbacks in the second version's form)."""

    on_connect: Any
    on_disconnect: Any
    on_message: Any
    on_subscribe: Any

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def username(self) -> str | None: ...
    def socket(self) -> Any: ...
    def reconnect(self) -> Any: ...
    def disconnect(self) -> Any: ...
    def loop_start(self) -> Any: ...
    def loop_stop(self) -> Any: ...
    def subscribe(self, topic: Any) -> tuple[Any, int | None]: ...


Address = tuple[str, int, str | None]


def address(client: Client) -> Address:
    """By what two connections are known to go to the same place."""
    return client.host, client.port, client.username
