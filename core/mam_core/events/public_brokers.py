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
