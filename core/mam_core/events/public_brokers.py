"""Brokers that anybody may use: what is sent there, anybody may read and forge."""

from __future__ import annotations

_PUBLIC = (
    "broker.hivemq.com",
    "broker.emqx.io",
    "test.mosquitto.org",
    "mqtt.eclipseprojects.io",
    "mqtt.flespi.io",
    "public.mqtthq.com",
    "broker.mqttdashboard.com",
    "iot.eclipse.org",
)


def is_public(host: str) -> bool:
    return host.casefold().rstrip(".") in _PUBLIC


def public_warning(host: str, whose: str = "events") -> str | None:
    """The sentence for whoever sends `whose` there or reads it there; None for any other host.

    Said each time: whoever says it once forgets it twice.
    """
    if not is_public(host):
        return None
    return f"{whose} go to the public broker {host}: anyone can read and forge them"
