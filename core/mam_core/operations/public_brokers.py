"""Whether events go where anybody can read and forge them: asked each time before they do."""

from __future__ import annotations

from mam_core.config import Config
from mam_core.errors import MamError
from mam_core.events.connection import resolve
from mam_core.events.public_brokers import public_warning
from mam_core.record_parts import Broker


def warning_of(broker: Broker | None, config: Config, registry_path: str) -> str | None:
    """The sentence about a record's broker, or about the usual one; None: it is nobody else's."""
    try:
        return public_warning(resolve(broker, config, registry_path=registry_path).host)
    except MamError:
        return None  # what is wrong with it is said when it is connected to
